from dataclasses import dataclass, field

from recordmill.schemas.setting_fields import added_setting, leave_out_added


@dataclass(frozen=True)
class Below:
    old: int = 1
    new: int = added_setting(2)


@dataclass(frozen=True)
class Settings:
    first: Below = field(default_factory=Below)
    named: dict[str, Below] = field(default_factory=dict)
    listed: tuple[Below, ...] = ()
    extra: Below = added_setting(default_factory=Below)


def test_added_settings_at_their_default_are_left_out():
    settings = Settings(named={"a": Below()}, listed=(Below(),))
    expected = {"first": {"old": 1}, "named": {"a": {"old": 1}}, "listed": ({"old": 1},)}
    assert leave_out_added(settings) == expected


def test_added_settings_with_another_value_stay():
    settings = Settings(first=Below(new=3), extra=Below(old=4))
    expected = {"first": {"old": 1, "new": 3}, "named": {}, "listed": (), "extra": {"old": 4}}
    assert leave_out_added(settings) == expected
