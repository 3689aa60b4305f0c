"use strict";

// Everything that comes from data is put into the page as text, never as markup.

const MOST_HEIGHT = 8000000; // of the scrolled space, which browsers limit
const BLOCK = 100; // images that are asked for at once
const MOST_CELLS = 96; // each has two nodes
const CAPTION = 24; // pixels below a picture
const NAMES = { split: "Splits", class: "Classes", changed: "Changed", marked: "Marked" };

const find = (id) => document.getElementById(id);
const grid = find("grid");
const space = find("space");
const dialog = find("image");

const state = {
  about: null,
  query: "",
  sort: "",
  total: 0,
  complete: false,
  blocks: new Map(),
  asked: new Set(),
  generation: 0,
  columns: 1,
  side: 180,
  offset: 0, // pixels above the visible part, in the whole grid
  lastTop: 0,
  current: 0, // the place of the image with the focus
  shown: null, // the place of the image in the dialog
  hidden: new Set(), // kinds and classes that are switched off
  selected: new Set(), // numbers of images
  anchor: null, // the place where a range begins
  all: false, // whether everything that the query selects is selected
  selecting: false, // whether a click selects
  marks: null,
};

function make(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.includes("-") || key === "role" || key === "for") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children);
  return node;
}

function count(number, thing) {
  const plural = thing.endsWith("s") || thing.endsWith("x") ? thing + "es" : thing + "s";
  return `${number.toLocaleString("en")} ${number === 1 ? thing : plural}`;
}

function size(bytes) {
  if (bytes < 1000) return count(bytes, "byte");
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 1000 && unit < 2) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toPrecision(3)} ${units[unit]}`;
}

// Control characters and marks that reorder text would change the text around them.
function plain(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    "\ufffd");
}

function shorten(text, most) {
  const shown = plain(text);
  if (shown.length <= most) return shown;
  const half = Math.floor(most / 2);
  return `${shown.slice(0, half)}\u2026${shown.slice(-half + 1)}`;
}

async function ask(parameters) {
  const response = await fetch(`/rows?${new URLSearchParams(parameters)}`);
  if (response.status === 403) {
    throw new Error("this page is no longer allowed: start recordmill view again");
  }
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

function report(error) {
  const gone = error instanceof TypeError;
  find("problem").textContent = gone ? "recordmill view has stopped" : plain(error.message);
}

// The address

function readAddress() {
  const given = new URLSearchParams(location.search);
  state.query = given.get("q") || "";
  state.sort = given.get("sort") || "";
  find("query").value = state.query;
  find("sort").value = state.sort;
  return given.get("image");
}

function writeAddress() {
  const kept = new URLSearchParams();
  if (state.query) kept.set("q", state.query);
  if (state.sort) kept.set("sort", state.sort);
  const opened = state.shown === null ? undefined : imageAt(state.shown);
  if (opened) kept.set("image", opened.number);
  const text = kept.toString();
  history.replaceState(null, "", text ? `/?${text}` : "/");
}

// The grid

function imageAt(place) {
  const block = state.blocks.get(Math.floor(place / BLOCK));
  return block && block[place % BLOCK];
}

async function load(number) {
  if (state.asked.has(number)) return;
  state.asked.add(number);
  const generation = state.generation;
  try {
    const found = await ask({ part: "images", q: state.query, sort: state.sort,
      first: number * BLOCK, count: BLOCK });
    if (generation !== state.generation) return;
    find("problem").textContent = "";
    take(found, number);
  } catch (error) {
    if (generation !== state.generation) return;
    state.asked.delete(number);
    report(error);
  }
}

function take(found, number) {
  const progress = found.progress;
  if (found.images.every((image) => image.key) || progress.is_complete) {
    state.blocks.set(number, found.images);
  } else {
    state.blocks.set(number, found.images);
    state.asked.delete(number);
  }
  state.total = found.total === null ? progress.images : found.total;
  if (found.is_selected) drawFacets(found.counts);
  follow(progress);
  layOut();
}

let waiting = null;

function follow(progress) {
  const bar = find("progress");
  bar.hidden = progress.is_complete;
  bar.max = progress.total === null ? Math.max(progress.files_total, 1) : Math.max(progress.total, 1);
  bar.value = progress.total === null ? progress.files : progress.images;
  const read = progress.is_complete ? "" : `, ${progress.images.toLocaleString("en")} read`;
  const damaged = progress.damages ? `, ${count(progress.damages, "damaged part")} skipped` : "";
  find("count").textContent = `${count(state.total, "image")}${read}${damaged}`;
  if (progress.fault) report(new Error(progress.fault));
  if (progress.is_complete && !state.complete) enable();
  if (!progress.is_complete && !progress.fault && waiting === null) {
    waiting = setTimeout(() => {
      waiting = null;
      state.asked.clear();
      load(Math.floor(state.current / BLOCK));
    }, 500);
  }
}

function enable() {
  state.complete = true;
  find("query").disabled = false;
  find("sort").disabled = false;
  find("open-wrong").disabled = false;
  readMarks();
  if (state.query || state.sort) select();
  else {
    state.asked.clear();
    load(0);
  }
}

// Starts again with the images that the query selects.
function select() {
  state.generation += 1;
  state.selected.clear();
  state.all = false;
  drawActions();
  state.blocks.clear();
  state.asked.clear();
  state.current = 0;
  state.offset = 0;
  state.lastTop = 0;
  grid.scrollTop = 0;
  writeAddress();
  load(0);
}

function rows() {
  return Math.ceil(state.total / state.columns);
}

function wholeHeight() {
  return rows() * (state.side + CAPTION);
}

function layOut() {
  const width = grid.clientWidth;
  const height = grid.clientHeight;
  if (!width || !height) return;
  // The cells of a screen and of a row above and below must not be more than MOST_CELLS.
  let side = width < 500 ? 110 : 170;
  const fits = () => Math.floor(width / side) * (Math.ceil(height / (side + CAPTION)) + 3);
  while (fits() > MOST_CELLS) side += 5;
  state.columns = Math.max(Math.floor(width / side), 1);
  state.side = Math.floor(width / state.columns);
  const tall = Math.min(wholeHeight(), MOST_HEIGHT);
  space.style.height = `${tall}px`;
  grid.classList.toggle("empty", state.total === 0);
  draw();
}

// Of a grid that is taller than browsers allow, small movements are exact, and others in proportion.
function scrolled() {
  const moved = grid.scrollTop - state.lastTop;
  const most = Math.max(space.clientHeight - grid.clientHeight, 1);
  const real = Math.max(wholeHeight() - grid.clientHeight, 0);
  if (real <= most) state.offset = grid.scrollTop;
  else if (grid.scrollTop <= 0) state.offset = 0;
  else if (grid.scrollTop >= most - 1) state.offset = real;
  else if (Math.abs(moved) < 2 * grid.clientHeight) {
    state.offset = Math.min(Math.max(state.offset + moved, 0), real);
  } else state.offset = (grid.scrollTop / most) * real;
  state.lastTop = grid.scrollTop;
  draw();
}

const cells = new Map();
let picturing = null;

function draw() {
  const tall = state.side + CAPTION;
  const first = Math.max(Math.floor(state.offset / tall) - 1, 0) * state.columns;
  const visible = (Math.ceil(grid.clientHeight / tall) + 2) * state.columns;
  const end = Math.min(first + visible, state.total);
  for (const [place, cell] of cells) {
    if (place < first || place >= end) {
      cell.firstChild.removeAttribute("src");
      cell.remove();
      cells.delete(place);
    }
  }
  for (let place = first; place < end; place += 1) {
    if (!cells.has(place)) {
      const picture = make("img", { alt: "", decoding: "async" });
      picture.addEventListener("error", () => picture.parentNode &&
        picture.hasAttribute("src") && picture.parentNode.setAttribute("data-broken", ""));
      const cell = make("div", { className: "cell", id: `cell-${place}`, role: "option" }, picture);
      cells.set(place, cell);
      space.append(cell);
    }
    dress(cells.get(place), place, tall);
  }
  for (let block = Math.floor(first / BLOCK); block * BLOCK < end; block += 1) load(block);
  const focused = cells.get(state.current);
  if (focused) grid.setAttribute("aria-activedescendant", focused.id);
  else grid.removeAttribute("aria-activedescendant");
  clearTimeout(picturing);
  picturing = setTimeout(loadPictures, 40); // cells that are scrolled past need no picture
}

function dress(cell, place, tall) {
  const image = imageAt(place);
  const row = Math.floor(place / state.columns);
  const top = row * tall - state.offset + grid.scrollTop;
  cell.style.transform = `translate(${(place % state.columns) * state.side}px, ${top}px)`;
  cell.style.width = `${state.side}px`;
  cell.style.height = `${tall}px`;
  cell.classList.toggle("current", place === state.current);
  const selected = Boolean(image) && (state.all || state.selected.has(image.number));
  cell.setAttribute("aria-selected", String(selected));
  cell.dataset.mark = image ? image.mark : "nothing";
  if (image && image.mark === "excluded") cell.dataset.badge = "excluded";
  else if (image && image.mark === "corrected") cell.dataset.badge = shorten(image.new_class, 40);
  else cell.removeAttribute("data-badge");
  cell.setAttribute("aria-setsize", state.total);
  cell.setAttribute("aria-posinset", place + 1);
  const number = image ? String(image.number) : "";
  if (cell.dataset.number !== number) {
    cell.dataset.number = number;
    cell.firstChild.removeAttribute("src");
    cell.removeAttribute("data-broken");
  }
  cell.dataset.caption = image ? caption(image) : "";
  cell.setAttribute("aria-label", image ? describe(image) : "not read yet");
}

function caption(image) {
  const classes = [...new Set(image.classes)];
  if (image.objects > 0) return `${image.objects} \u00d7 ${shorten(classes.join(", "), 60)}`;
  return shorten(classes.join(", ") || image.key.split("/").pop(), 60);
}

function describe(image) {
  const classes = [...new Set(image.classes)].join(", ");
  const mark = image.mark === "corrected" ? `to become ${image.new_class}` :
    image.mark === "excluded" ? "to be excluded" : "";
  const named = [image.key, classes].filter(Boolean).join(": ") || `image ${image.number}`;
  return shorten([named, mark].filter(Boolean).join(", "), 200);
}

function loadPictures() {
  for (const cell of cells.values()) {
    const picture = cell.firstChild;
    if (cell.dataset.number && !picture.hasAttribute("src")) {
      picture.src = `/picture?image=${cell.dataset.number}`;
    }
  }
}

function bring(place) {
  const tall = state.side + CAPTION;
  const top = Math.floor(place / state.columns) * tall;
  let offset = state.offset;
  if (top < offset) offset = top;
  if (top + tall > offset + grid.clientHeight) offset = top + tall - grid.clientHeight;
  if (offset === state.offset) return;
  const most = Math.max(space.clientHeight - grid.clientHeight, 1);
  const real = Math.max(wholeHeight() - grid.clientHeight, 1);
  state.offset = offset;
  grid.scrollTop = real <= most ? offset : (offset / real) * most;
  state.lastTop = grid.scrollTop;
}

function move(place) {
  if (!state.total) return;
  state.current = Math.min(Math.max(place, 0), state.total - 1);
  bring(state.current);
  draw();
}

// Marks

async function post(request) {
  const response = await fetch("/marks", { method: "POST", body: JSON.stringify(request),
    headers: { "Content-Type": "application/json" } });
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

async function readMarks() {
  try {
    const response = await fetch("/marks");
    state.marks = await response.json();
    find("mode").hidden = Boolean(state.marks.problem);
    const options = state.marks.classes.map((name) => make("option", { value: name }, shorten(name, 80)));
    find("class").replaceChildren(...options);
    find("class-field").hidden = Boolean(state.marks.no_classes);
    drawActions();
  } catch (error) {
    report(error);
  }
}

// Marks the selected images, or one.
async function mark(action, number, name) {
  const request = { action };
  if (number !== undefined) request.images = [number];
  else if (state.all) request.query = state.query;
  else request.images = [...state.selected];
  if (action === "correct") request.class_name = name;
  if (request.images && !request.images.length) return;
  try {
    state.marks = await post(request);
    find("problem").textContent = "";
  } catch (error) {
    report(error);
    return;
  }
  if (number === undefined) {
    state.selected.clear();
    state.all = false;
  }
  state.asked.clear();
  const shown = Math.floor(state.offset / (state.side + CAPTION)) * state.columns;
  const kept = new Set([shown, state.current, ...cells.keys()].map((place) => Math.floor(place / BLOCK)));
  for (const block of [...state.blocks.keys()]) if (!kept.has(block)) state.blocks.delete(block);
  await Promise.all([...kept].map(load));
  drawActions();
}

function drawActions() {
  const marks = state.marks;
  const number = state.all ? state.total : state.selected.size;
  const marked = marks ? marks.excluded + marks.corrected : 0;
  find("actions").hidden = !marks || Boolean(marks.problem) || (!number && !marked);
  find("chosen").hidden = !number;
  find("chosen-count").textContent = `${number.toLocaleString("en")} selected`;
  find("all").textContent = `Select all ${state.total.toLocaleString("en")}`;
  find("all").hidden = state.all || number >= state.total;
  find("apply").hidden = !marked;
  if (!marks) return;
  const parts = [];
  if (marks.excluded) parts.push(`${count(marks.excluded, "image")} to exclude`);
  if (marks.corrected) parts.push(`${count(marks.corrected, "image")} to get another class`);
  find("marked").textContent = parts.join(", ");
  find("command").textContent = marks.command;
  find("mark-files").textContent =
    `The marks are in ${plain(marks.files.exclude)} and ${plain(marks.files.corrections)}.`;
}

async function selectRange(from, to) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  for (let block = Math.floor(first / BLOCK); block * BLOCK <= last; block += 1) await load(block);
  for (let place = first; place <= last; place += 1) {
    const image = imageAt(place);
    if (image) state.selected.add(image.number);
  }
  drawActions();
  draw();
}

function selectOne(place) {
  const image = imageAt(place);
  if (!image || !state.marks || state.marks.problem) return;
  if (state.all) {
    state.all = false;
    state.selected.clear();
  }
  if (state.selected.has(image.number)) state.selected.delete(image.number);
  else state.selected.add(image.number);
  state.anchor = place;
  drawActions();
  draw();
}

// Filters

const TERM = /([A-Za-z_]+)(!=|!~|<=|>=|=|~|<|>)((?:"(?:[^"\\]|\\.)*"|[^\s,"]+)(?:,(?:"(?:[^"\\]|\\.)*"|[^\s,"]+))*)/g;
const VALUE = /"(?:[^"\\]|\\.)*"|[^\s,"]+/g;

function quote(value) {
  if (/^[^\s,"\\]+$/.test(value)) return value;
  return `"${value.replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;
}

function chosen(name) {
  for (const [, key, comparison, values] of state.query.matchAll(TERM)) {
    if (key === name && comparison === "=") {
      return values.match(VALUE).map((value) =>
        value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gs, "$1") : value);
    }
  }
  return [];
}

function choose(name, values) {
  const others = [...state.query.matchAll(TERM)]
    .filter(([, key, comparison]) => key !== name || comparison !== "=")
    .map(([term]) => term);
  const own = values.length ? [`${name}=${values.map(quote).join(",")}`] : [];
  state.query = [...others, ...own].join(" ");
  find("query").value = state.query;
  select();
}

function drawFacets(counts) {
  const focused = document.activeElement && document.activeElement.dataset.facet;
  const facets = [];
  for (const [name, title] of Object.entries(NAMES)) {
    const selected = chosen(name);
    const listed = Object.entries(counts[name] || {});
    const missing = selected.filter((value) => !(value in (counts[name] || {})));
    const values = [...missing.map((value) => [value, 0]), ...listed];
    if (values.length < 2 && !selected.length) continue;
    const boxes = values.map(([value, number]) => {
      const box = make("input", { type: "checkbox", checked: selected.includes(value) });
      box.dataset.facet = `${name}=${value}`;
      box.addEventListener("change", () => choose(name,
        box.checked ? [...selected, value] : selected.filter((each) => each !== value)));
      const shown = value === "" ? "(no class)" : value.replaceAll("_", " ");
      return make("label", { className: "value" }, box,
        make("span", { className: "label", dir: "auto" }, shorten(name === "class" && value ? value : shown, 80)),
        make("span", { className: "number" }, number.toLocaleString("en")));
    });
    facets.push(make("fieldset", {}, make("legend", {}, title), ...boxes));
  }
  find("facets").replaceChildren(...facets);
  for (const box of focused ? find("facets").querySelectorAll("input") : []) {
    if (box.dataset.facet === focused) box.focus();
  }
}

// One image

// Neighboring numbers get very different hues, all of them light enough for black letters.
async function open(place) {
  const image = imageAt(place);
  if (!image) return;
  state.shown = place;
  state.current = place;
  if (!dialog.open) dialog.showModal();
  writeAddress();
  const shown = await showNumber(image.number);
  if (shown) {
    find("previous").disabled = place === 0;
    find("next").disabled = place >= state.total - 1;
    for (const near of [place - 1, place + 1]) {
      const neighbor = imageAt(near);
      if (neighbor) new Image().src = `/picture?image=${neighbor.number}&large=1`;
      else if (near >= 0 && near < state.total) load(Math.floor(near / BLOCK));
    }
  }
}

let showing = 0;

async function showNumber(number) {
  showing += 1;
  const turn = showing;
  find("image-key").textContent = "";
  try {
    const image = await ask({ part: "image", image: number });
    if (turn !== showing) return false;
    state.image = image;
    drawImage(image);
    return true;
  } catch (error) {
    if (turn === showing) {
      find("image-key").textContent = plain(error.message);
      find("stage").hidden = true;
      find("facts").replaceChildren();
    }
    return false;
  }
}

function drawImage(image) {
  find("image-key").textContent = shorten(image.cell.key, 300);
  find("stage").hidden = false;
  drawPicture(image);
  drawFacts(image);
  fit();
}

function drawPicture(image) {
  const picture = find("picture");
  const address = `/picture?image=${image.cell.number}&large=1`;
  if (picture.getAttribute("src") !== address) picture.src = address;
  picture.alt = describe(image.cell);
  find("source-figure").hidden = !state.about.has_sources;
  if (state.about.has_sources) {
    find("source").src = `/picture?image=${image.cell.number}&source=1`;
    find("source").alt = `the source ${plain(image.cell.key)}`;
  }
}

function isShown(shape) {
  return !state.hidden.has(`kind ${shape.kind}`) && !state.hidden.has(`class ${shape.class_name}`);
}

function fit() {
  const image = state.image;
  const picture = find("picture");
  if (!image || !dialog.open) return;
  const width = image.cell.width > 0 ? image.cell.width : picture.naturalWidth;
  const height = image.cell.height > 0 ? image.cell.height : picture.naturalHeight;
  if (!width || !height) return;
  const stages = find("stages");
  const style = getComputedStyle(stages);
  const shared = find("source-figure").hidden ? 1 : 2;
  const wide = (stages.clientWidth - parseFloat(style.paddingLeft) * 2) / shared - (shared - 1) * 16;
  const tall = stages.clientHeight - parseFloat(style.paddingTop) * 2;
  const scale = Math.min(wide / width, tall / height);
  const stage = find("stage");
  stage.style.width = `${width * scale}px`;
  stage.style.height = `${height * scale}px`;
  picture.classList.toggle("enlarged", scale > 2);
  drawShapes(image, width, height);
}

function makeSvg(name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// The parts of a shape, in the pixels of its image; a point has the radius `round`.
function* partsOf(shape, width, height, round) {
  const { color, sides, layer, points, lines, reason } = shape;
  if (layer) yield makeSvg("image", { href: layer, width, height, preserveAspectRatio: "none" });
  if (sides) {
    const [left, top, right, bottom] = sides;
    const place = { x: left * width, y: top * height,
      width: Math.max((right - left) * width, 1), height: Math.max((bottom - top) * height, 1) };
    const dashes = reason ? { "stroke-dasharray": "6 4" } : {};
    yield makeSvg("rect", { ...place, stroke: "#000c", "stroke-width": 4, ...dashes });
    yield makeSvg("rect", { ...place, stroke: color, "stroke-width": 2, ...dashes });
  }
  for (const [from, to] of lines) {
    const [[x1, y1], [x2, y2]] = [points[from], points[to]];
    yield makeSvg("line", { x1: x1 * width, y1: y1 * height, x2: x2 * width, y2: y2 * height,
      stroke: color, "stroke-width": 2 });
  }
  for (const [x, y, visible] of points) {
    yield makeSvg("circle", { cx: x * width, cy: y * height, r: round,
      fill: visible ? color : "none", stroke: visible ? "#000" : color, "stroke-width": round / 4 });
  }
}

function drawShapes(image, width, height) {
  const svg = find("shapes");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const round = 4 * width / find("stage").clientWidth;
  const parts = [];
  const tags = [];
  for (const shape of image.shapes.filter(isShown)) {
    parts.push(...partsOf(shape, width, height, round));
    const corners = [...(shape.sides ? [shape.sides] : []), ...shape.points];
    if (corners.length && shape.class_name) {
      const left = Math.min(...corners.map(([x]) => x));
      const top = Math.min(...corners.map(([, y]) => y));
      const name = shape.reason ? `${shape.class_name}: ${words(shape.reason)}` : shape.class_name;
      const tag = make("span", { className: "tag" }, shorten(name, 60));
      if (top * find("stage").clientHeight < 18) tag.classList.add("inside");
      tag.style.left = `${Math.min(Math.max(left, 0), 1) * 100}%`;
      tag.style.top = `${Math.min(Math.max(top, 0), 1) * 100}%`;
      tag.style.background = shape.color;
      tags.push(tag);
    }
  }
  svg.replaceChildren(...parts);
  find("tags").replaceChildren(...tags);
}

function pairs(entries) {
  const list = make("dl");
  for (const [term, text] of entries) {
    if (text === "" || text === null || text === undefined) continue;
    list.append(make("dt", {}, term), make("dd", {}, plain(String(text))));
  }
  return list;
}

function toggle(name, label, number, color) {
  const box = make("input", { type: "checkbox", checked: !state.hidden.has(name) });
  box.addEventListener("change", () => {
    if (box.checked) state.hidden.delete(name);
    else state.hidden.add(name);
    drawPicture(state.image);
    fit();
  });
  const parts = [box];
  if (color) {
    const swatch = make("span", { className: "swatch" });
    swatch.style.background = color;
    parts.push(swatch);
  }
  parts.push(make("span", { className: "label", dir: "auto" }, shorten(label, 80)));
  if (number !== null) parts.push(make("span", { className: "number" }, String(number)));
  return make("label", { className: "value" }, ...parts);
}

function drawToggles(image) {
  const [kinds, classes, colors] = [new Map(), new Map(), new Map()];
  for (const shape of image.shapes) {
    kinds.set(shape.kind, (kinds.get(shape.kind) || 0) + 1);
    classes.set(shape.class_name, (classes.get(shape.class_name) || 0) + 1);
    if (!colors.has(shape.class_name)) colors.set(shape.class_name, shape.color);
  }
  if (!kinds.size) return [];
  return [make("fieldset", {}, make("legend", {}, "Shown"),
    ...[...kinds].map(([kind, number]) => toggle(`kind ${kind}`, kind.replaceAll("_", " "), number)),
    ...[...classes].map(([name, number]) =>
      toggle(`class ${name}`, name || "(no class)", number, colors.get(name))))];
}

async function markShown(action, name) {
  const number = state.image.cell.number;
  await mark(action, number, name);
  if (state.image && state.image.cell.number === number) await showNumber(number);
}

function drawMarks(image) {
  if (!state.marks || state.marks.problem) return [];
  const marked = image.cell.mark;
  const parts = [make("h3", {}, "Mark")];
  if (marked === "excluded") parts.push(make("p", {}, "It is to be excluded."));
  if (marked === "corrected") {
    parts.push(make("p", {}, `It is to become ${plain(image.cell.new_class)}.`));
  }
  const buttons = [];
  const button = (text, action) => {
    const node = make("button", { type: "button" }, text);
    node.addEventListener("click", action);
    buttons.push(node);
  };
  if (marked !== "excluded") button("Exclude", () => markShown("exclude"));
  if (marked !== "nothing") button("Remove mark", () => markShown("clear"));
  if (!state.marks.no_classes) {
    const choice = make("select", { "aria-label": "New class" },
      ...state.marks.classes.map((name) => make("option", { value: name }, shorten(name, 80))));
    choice.value = image.cell.new_class || image.cell.classes[0] || "";
    buttons.push(choice);
    button("Set class", () => markShown("correct", choice.value));
  }
  parts.push(make("div", { className: "act" }, ...buttons));
  return parts;
}

function drawFacts(image) {
  const cell = image.cell;
  const changes = image.changes.map((name) => state.about.changes[name] || name);
  const sized = cell.width > 0 ? `${cell.width} \u00d7 ${cell.height} pixels` : "";
  const nodes = [
    pairs([
      ["class", [...new Set(cell.classes)].join(", ")],
      ["split", image.split],
      ["size", sized],
      ["format", [image.format, image.image_bytes ? size(image.image_bytes) : ""].filter(Boolean).join(", ")],
      ["objects", cell.objects < 0 ? "" : cell.objects],
      ["dropped objects", image.dropped || ""],
      ["changed", changes.join("; ")],
    ]),
    ...drawToggles(image),
    ...drawMarks(image),
    make("h3", {}, "Where it is"),
    pairs([
      ["source", cell.key],
      ["its SHA-256", image.sha256],
      ["file", image.shard],
      ["record", `${image.split}:${image.place}`],
      ["at byte", image.offset.toLocaleString("en")],
      ["record's length", size(image.bytes)],
    ]),
    make("h3", {}, "In Python"),
    make("p", {}, make("code", {}, plain(image.python))),
    make("h3", {}, count(image.features.length, "feature")),
    ...image.features.map((feature) => make("div", { className: "feature" },
      make("code", {}, plain(feature.key)), ` ${feature.kind} [${feature.length}]`,
      make("div", { className: "values" }, plain(feature.text)))),
  ];
  find("facts").replaceChildren(...nodes);
  find("facts").scrollTop = 0;
}

function step(by) {
  if (state.shown === null) return;
  const place = state.shown + by;
  if (place >= 0 && place < state.total && imageAt(place)) open(place);
}

// What went wrong

function section(title, number, ...content) {
  return make("details", {}, make("summary", {}, `${title} (${number.toLocaleString("en")})`), ...content);
}

function figure(address, label, caption, action) {
  const picture = make("img", { alt: "", loading: "lazy", src: address });
  picture.addEventListener("error", () => { picture.hidden = true; });
  const shown = make("button", { type: "button", "aria-label": plain(label) }, picture);
  if (action) shown.addEventListener("click", action);
  else shown.disabled = true;
  return make("figure", {}, shown, make("figcaption", {}, shorten(caption, 160)));
}

function showAlone(number) {
  state.shown = null;
  if (!dialog.open) dialog.showModal();
  find("previous").disabled = true;
  find("next").disabled = true;
  showNumber(number);
}

function figureOf(number, caption) {
  return figure(`/picture?image=${number}`, `image ${caption}`, caption, () => showAlone(number));
}

function listRejected(group) {
  const parts = [];
  if (group.meaning) parts.push(make("p", {}, plain(group.meaning)));
  if (group.flag) parts.push(make("p", {}, "To accept them: ", make("code", {}, group.flag)));
  if (state.about.has_sources) {
    parts.push(make("div", { className: "pictures" }, ...group.files.map((file, place) =>
      figure(`/picture?reason=${encodeURIComponent(group.reason)}&place=${place}`, file.key,
        `${file.key}: ${file.detail}`))));
  } else {
    parts.push(make("ul", {}, ...group.files.map((file) =>
      make("li", {}, shorten(`${file.key}: ${file.detail}`, 400)))));
  }
  const rest = group.count - group.files.length;
  if (rest) parts.push(make("p", {}, `and ${count(rest, "further file")}`));
  return section(group.reason.replaceAll("_", " "), group.count, ...parts);
}

function words(code) {
  return code.replaceAll("_", " ");
}

function listDropped(group) {
  const pictures = group.objects.map((object) => {
    const place = `number ${object.place}${object.class_name ? ` (${object.class_name})` : ""}`;
    const made = figureOf(object.image, `${object.key}: ${place}`);
    if (object.sides) made.querySelector("button").append(outline(object, made.querySelector("img")));
    return made;
  });
  return section(`Dropped ${group.what}: ${words(group.reason)}`, group.objects.length,
    make("div", { className: "pictures" }, ...pictures));
}

// The box of a dropped object over its picture, which does not fill its element; at the edge if it
// is outside.
function outline(object, picture) {
  const svg = makeSvg("svg", { "aria-hidden": "true" });
  const sides = object.sides.map((side) => Math.min(Math.max(side, 0), 1));
  picture.addEventListener("load", () => {
    const [width, height] = [picture.naturalWidth, picture.naturalHeight];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...partsOf({ color: object.color, sides, layer: null, points: [], lines: [],
      reason: "dropped" }, width, height, 1));
  });
  return svg;
}

function listDuplicates(title, groups) {
  const shown = groups.flatMap((group) => [
    make("p", {}, describeGroup(group)),
    make("div", { className: "pictures" }, ...group.images.map((image) => {
      const caption = [image.key, image.split, image.class_name].filter(Boolean).join(", ");
      return image.image === null ? make("figure", {}, make("figcaption", {}, shorten(caption, 160)))
        : figureOf(image.image, caption);
    })),
  ]);
  return section(title, groups.length, ...shown);
}

// Says why a group matters: splits that share an image, and classes that contradict each other.
function describeGroup(group) {
  const splits = [...new Set(group.images.map((image) => image.split))];
  const classes = [...new Set(group.images.map((image) => image.class_name).filter(Boolean))];
  const bits = group.distance === 1 ? "1 bit" : `${group.distance} bits`;
  return [
    splits.length > 1 ? `In ${splits.length} splits: ${shorten(splits.join(", "), 80)}`
      : `In the split ${shorten(splits[0], 80)}`,
    classes.length > 1 && "with different classes",
    group.distance !== null && `${bits} of 64 differ`,
  ].filter(Boolean).join("; ");
}

function filtered(title, number, query) {
  const button = make("button", { type: "button" }, "Show them");
  button.addEventListener("click", () => {
    find("wrong").close();
    state.query = query;
    find("query").value = query;
    select();
  });
  return section(title, number, button);
}

function listSizes() {
  const choice = make("select", { "aria-label": "Class" },
    ...Object.keys(state.about.labels).map((name) => make("option", { value: name }, shorten(name, 80))));
  const result = make("div", {});
  const button = make("button", { type: "button" }, "Find");
  button.addEventListener("click", async () => {
    result.replaceChildren("...");
    try {
      const found = await ask({ part: "sizes", class: choice.value });
      const row = (title, sizes) => [make("h3", {}, title), make("div", { className: "pictures" },
        ...sizes.map((size) => figureOf(size.image, `${(100 * size.share).toPrecision(2)} % of the image`)))];
      result.replaceChildren(
        make("p", {}, `${count(found.read, "image")} of ${found.images.toLocaleString("en")} searched`),
        ...row("Smallest", found.smallest), ...row("Largest", found.largest));
    } catch (error) {
      result.replaceChildren(plain(error.message));
    }
  });
  const details = make("details", {}, make("summary", {}, "Smallest and largest objects of a class"),
    make("div", { className: "act" }, choice, button), result);
  return details;
}

async function showWrong() {
  const box = find("findings");
  box.replaceChildren();
  find("wrong").showModal();
  try {
    const found = await ask({ part: "findings" });
    const kinds = { same_bytes: "Images with the same bytes", look_alike: "Pairs that look alike",
      closest_apart: "The closest pair in different splits" };
    const parts = found.rejected.map(listRejected);
    for (const [kind, title] of Object.entries(kinds)) {
      const groups = found.duplicates.filter((group) => group.kind === kind);
      if (groups.length) parts.push(listDuplicates(title, groups));
    }
    parts.push(...found.dropped_objects.map(listDropped));
    if (found.dropped) parts.push(filtered("Images with dropped objects", found.dropped, "dropped>=1"));
    if (found.bare) parts.push(filtered("Images without objects", found.bare, "objects=0"));
    if (found.bare !== null) parts.push(listSizes());
    if (found.rejected.length) parts.unshift(make("h3", {}, "Rejected files, by reason"));
    box.replaceChildren(...(parts.length ? parts : [make("p", {}, "Nothing went wrong.")]));
  } catch (error) {
    box.replaceChildren(plain(error.message));
  }
}

find("open-wrong").addEventListener("click", showWrong);
find("close-wrong").addEventListener("click", () => find("wrong").close());

// What people do

grid.addEventListener("scroll", scrolled, { passive: true });
grid.addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (!cell) return;
  const place = Number(cell.id.slice("cell-".length));
  move(place);
  if (event.shiftKey && state.anchor !== null) selectRange(state.anchor, place);
  else if (state.selecting || event.ctrlKey || event.metaKey) selectOne(place);
  else open(place);
});
grid.addEventListener("keydown", (event) => {
  const page = Math.max(Math.floor(grid.clientHeight / (state.side + CAPTION)), 1) * state.columns;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -state.columns, ArrowDown: state.columns,
    PageUp: -page, PageDown: page, Home: -state.current, End: state.total };
  if (event.key in steps) {
    event.preventDefault();
    move(state.current + steps[event.key]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    open(state.current);
  } else if (event.key === " ") {
    event.preventDefault();
    selectOne(state.current);
  } else if (event.key === "Escape" && (state.selected.size || state.all)) {
    unselect();
  } else if (event.key === "x" && !event.ctrlKey && !event.metaKey) {
    if (state.selected.size || state.all) mark("exclude");
    else if (imageAt(state.current)) mark("exclude", imageAt(state.current).number);
  }
});

function unselect() {
  state.selected.clear();
  state.all = false;
  drawActions();
  draw();
}

find("mode").addEventListener("click", () => {
  state.selecting = !state.selecting;
  find("mode").setAttribute("aria-pressed", String(state.selecting));
});
find("all").addEventListener("click", () => {
  state.all = true;
  drawActions();
  draw();
});
find("unselect").addEventListener("click", unselect);
find("exclude").addEventListener("click", () => mark("exclude"));
find("clear").addEventListener("click", () => mark("clear"));
find("correct").addEventListener("click", () => mark("correct", undefined, find("class").value));
find("copy").addEventListener("click", () => navigator.clipboard.writeText(state.marks.command));
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) &&
    event.target.type !== "checkbox";
  if (event.key === "/" && !typing && !dialog.open && !find("wrong").open) {
    event.preventDefault();
    find("query").focus();
    find("query").select();
  }
  if (dialog.open && !typing && event.key === "x" && state.image) markShown("exclude");
  if (dialog.open && !typing && event.key === "ArrowLeft") step(-1);
  if (dialog.open && !typing && event.key === "ArrowRight") step(1);
  if (event.key === "Escape" && event.target === find("query")) grid.focus();
});
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  state.query = find("query").value.trim();
  select();
});
let typed = null;
find("query").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    state.query = find("query").value.trim();
    select();
  }, 350);
});
find("sort").addEventListener("change", () => {
  state.sort = find("sort").value;
  select();
});
find("previous").addEventListener("click", () => step(-1));
find("next").addEventListener("click", () => step(1));
find("close").addEventListener("click", () => dialog.close());
find("picture").addEventListener("load", fit);
dialog.addEventListener("close", () => {
  state.shown = null;
  state.image = null;
  find("picture").removeAttribute("src");
  writeAddress();
  layOut();
  bring(state.current);
  draw();
  if (!find("wrong").open) grid.focus();
});
new ResizeObserver(() => {
  layOut();
  fit();
}).observe(document.documentElement);

async function start() {
  const wanted = readAddress();
  find("filters").open = matchMedia("(min-width: 801px)").matches;
  state.about = await ask({ part: "about" });
  find("kind").textContent = `${state.about.kind}, ${plain(state.about.path)}`;
  const first = await ask({ part: "images", first: 0, count: BLOCK });
  take(first, 0);
  grid.focus({ preventScroll: true });
  if (wanted !== null && /^\d+$/.test(wanted)) {
    dialog.showModal();
    await showNumber(Number(wanted));
  }
}

start().catch(report);
