// One text at a time: ask, show, explain. No library, no build step.
const $ = (id) => document.getElementById(id);
const per = (x, digits = 1) => `${(100 * x).toFixed(digits)} %`;
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const MEANING = {
  "P@1": "first answers that are right",
  "P@5": "of five answers are right",
  "R@5": "of true labels are among five",
  "nDCG@5": "the same, earlier counts more",
  "PSP@5": "right answers, rare ones count more",
  "macro-F1 present@5": "every label in the test rows counts the same",
  "coverage present@5": "of the labels in the test rows are found at least once",
};

let token = sessionStorage.getItem("longtail-token") || "";
let model = null;
let asked = null; // what the shown answers were asked for
let chosen = 0;
let running = null;

async function call(path, options = {}) {
  for (;;) {
    const headers = { ...(options.headers || {}) };
    if (token) headers.authorization = `Bearer ${token}`;
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) {
      if (!response.ok) {
        const problem = await response.json().catch(() => ({ detail: response.statusText }));
        throw new Error(problem.detail);
      }
      return response;
    }
    await askForToken();
  }
}

let asking = null; // one dialog, however many requests were refused
function askForToken() {
  asking ??= new Promise((done) => {
    const dialog = $("token-dialog");
    dialog.addEventListener("close", () => {
      token = $("token").value;
      sessionStorage.setItem("longtail-token", token);
      asking = null;
      done();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function about() {
  model = await (await call("/model")).json();
  document.title = `${model.name} · Longtail`;
  $("name").textContent = model.name;
  $("about").textContent =
    `${model.n_labels.toLocaleString()} labels, learned from ${model.n_rows.toLocaleString()} texts. Model: ${model.choice}.`;
  $("tail").value = model.tail;
  showTail();
  for (const [name, value] of Object.entries(model.metrics || {})) {
    const tile = make("div");
    tile.append(make("dt", name), make("dd", per(value)));
    if (MEANING[name]) tile.append(make("dd", MEANING[name], "words"));
    $("metrics").append(tile);
  }
  $("measured-on").textContent = `Measured on ${model.measured_on}.`;
  $("measured-on").hidden = !model.measured_on;
  $("no-report").hidden = Boolean(model.metrics);
  $("report").hidden = !model.has_report;
}

function showTail() {
  const value = Number($("tail").value);
  $("tail-value").textContent = value === 0 ? "most probable first" : `rare labels come forward, ${value.toFixed(2)}`;
  const curve = model?.lean_curve;
  $("tail-cost").hidden = !curve;
  if (!curve) return;
  const among = along(curve, value, "R@5");
  const found = along(curve, value, "coverage present@5");
  $("tail-cost").textContent =
    `Measured: ${per(among)} of the true labels are among the first five answers; ${per(found)} of the labels in the test rows are found at least once.`;
}

// Between two measured points, a straight line.
function along(curve, at, name) {
  const next = Math.max(1, curve.findIndex((point) => point.tail >= at));
  const [a, b] = [curve[next - 1], curve[next]];
  return a[name] + ((at - a.tail) / (b.tail - a.tail)) * (b[name] - a[name]);
}

async function predict() {
  const text = $("text").value;
  running?.abort();
  if (!text.trim()) {
    asked = null;
    explaining?.abort();
    $("labels").replaceChildren();
    $("marked").hidden = true;
    $("legend").hidden = true;
    $("status").textContent = "Labels appear here as you type.";
    return;
  }
  const mine = (running = new AbortController());
  const began = performance.now();
  try {
    const response = await call("/predict", {
      method: "POST",
      signal: mine.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        texts: [text], k: Number($("k").value), tail: Number($("tail").value),
      }),
    });
    const answer = await response.json();
    if (mine !== running) return;
    asked = { text, labels: answer.results[0].labels, kind: answer.scores };
    show(answer.results[0].known_terms, performance.now() - began);
  } catch (error) {
    if (error.name === "AbortError") return;
    $("status").textContent = error.message;
  }
}

function show(known, milliseconds) {
  const { labels, kind } = asked;
  chosen = Math.min(chosen, Math.max(labels.length - 1, 0));
  const most = Math.max(...labels.map((item) => item.score), 1e-9);
  const least = Math.min(...labels.map((item) => item.score), 0);
  $("labels").replaceChildren(...labels.map((item, i) => {
    const button = make("button");
    button.type = "button";
    const share = kind === "probability" ? item.score : (item.score - least) / (most - least || 1);
    button.style.setProperty("--share", `${100 * Math.max(0, Math.min(1, share))}%`);
    const name = make("span", item.text || item.label, "label-name");
    if (item.text) name.append(make("span", item.label, "label-text"));
    const score = kind === "probability" ? per(item.score) : item.score.toFixed(3);
    button.append(name, make("span", score, "score"));
    button.addEventListener("click", () => choose(i));
    const entry = make("li");
    entry.append(button);
    return entry;
  }));
  const unknown = known === 0 ? "None of these words was seen in training: a guess. " : "";
  $("status").textContent = `${unknown}${labels.length} labels in ${milliseconds.toFixed(0)} ms.`;
  choose(chosen);
}

let explaining = null;
async function choose(i) {
  chosen = i;
  [...$("labels").querySelectorAll("button")].forEach((button, j) =>
    button.setAttribute("aria-pressed", String(i === j)));
  explaining?.abort();
  const text = asked?.text;
  const item = asked?.labels[i];
  $("marked").hidden = !item;
  $("legend").hidden = !item;
  if (!item) return;
  mark(text, [], "");
  const mine = (explaining = new AbortController());
  try {
    item.explanation ??= await (await call("/explain", {
      method: "POST",
      signal: mine.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text, label: item.label }),
    })).json();
  } catch (error) {
    if (error.name !== "AbortError") $("legend").textContent = error.message;
    return;
  }
  if (mine !== explaining) return;
  const spans = item.explanation.spans;
  mark(text, spans, spans.length
    ? `Shaded words speak for “${item.text || item.label}”, dashed ones against it.`
    : `No single word decides for “${item.text || item.label}”.`);
}

function mark(text, spans, legend) {
  const characters = Array.from(text); // spans count code points, not UTF-16 units
  const most = Math.max(...spans.map((span) => Math.abs(span[2])), 1e-9);
  const strong = spans.filter((span) => Math.abs(span[2]) > 0.08 * most); // the others would only distract
  const parts = [];
  let at = 0;
  for (const [start, end, weight] of strong) {
    parts.push(characters.slice(at, start).join(""));
    const mark = make("mark", characters.slice(start, end).join(""));
    mark.style.setProperty("--strength", (0.12 + (0.6 * Math.max(weight, 0)) / most).toFixed(2));
    if (weight < 0) mark.className = "against";
    mark.title = `${weight > 0 ? "+" : ""}${weight.toFixed(4)}`;
    parts.push(mark);
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  $("marked").replaceChildren(...parts);
  $("legend").textContent = legend;
}

let searching = null;
async function find() {
  const query = $("query").value;
  searching?.abort();
  const mine = (searching = new AbortController());
  try {
    const response = await call(`/labels?limit=8&q=${encodeURIComponent(query)}`, { signal: mine.signal });
    const { labels } = await response.json();
    $("found").replaceChildren(...labels.map((item) => {
      const entry = make("li");
      const name = make("span", item.text || item.label, "label-name");
      if (item.text) name.append(make("span", item.label, "label-text"));
      entry.append(name, make("span", `${item.training_texts.toLocaleString()} ${item.training_texts === 1 ? "text" : "texts"}`, "score soft"));
      return entry;
    }));
    if (!labels.length) $("found").replaceChildren(make("li", "no label has this in its name", "soft"));
  } catch (error) {
    if (error.name !== "AbortError") $("found").replaceChildren(make("li", error.message, "soft"));
  }
}

async function report() {
  if (!$("report").open || $("report-frame").srcdoc) return;
  $("report-frame").srcdoc = await (await call("/report")).text();
}

const later = (action, milliseconds) => {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
};
$("text").addEventListener("input", later(() => { chosen = 0; predict(); }, 150));
$("tail").addEventListener("input", () => { showTail(); chosen = 0; predict(); });
$("k").addEventListener("change", predict);
$("query").addEventListener("input", later(find, 150));
$("report").addEventListener("toggle", report);
about().then(() => { predict(); find(); }).catch((error) => { $("status").textContent = error.message; });
