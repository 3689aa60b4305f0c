from concurrent.futures import ThreadPoolExecutor

from transforms.progress import Progress


def test_counts_from_many_threads_add_up():
    progress = Progress()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(200):
            pool.submit(progress.add_done, 2)
            pool.submit(progress.add_listed, 3)
    assert (progress.done, progress.listed) == (400, 600)


def test_reset_goes_back_to_the_start():
    progress = Progress(listed=1, planned=2, done=3, stage="publishing")
    progress.reset()
    assert (progress.listed, progress.planned, progress.done, progress.stage) == (0, 0, 0, "listing")
