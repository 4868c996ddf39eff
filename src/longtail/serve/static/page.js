// One text at a time: ask, show, explain. No library, no build step.
import { find } from "./find.js";
import { $, call, isEmpty, make, per, post, score, session, shown } from "./session.js";
import { forget, why } from "./why.js";

const MEANING = {
  "P@1": "first answers that are right",
  "P@5": "of five answers are right",
  "R@5": "of true labels are among five",
  "nDCG@5": "the same, earlier counts more",
  "PSP@5": "right answers, rare ones count more",
  "macro-F1 present@5": "every label in the test rows counts the same",
  "coverage present@5": "of the labels in the test rows are found at least once",
};

let chosen = 0;
let running = null;

async function about() {
  const model = (session.model = await (await call("/model")).json());
  document.title = `${model.name} · Longtail`;
  $("name").textContent = model.name;
  $("about").textContent = model.about;
  if (model.fields) useFields(model.fields);
  offerExamples(model.examples);
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
  const made = model.created ? ` Trained on ${new Date(model.created).toLocaleDateString(undefined, { dateStyle: "long" })}.` : "";
  $("choice").textContent = `Inside: ${model.choice}.${made}`;
  $("choice").hidden = false;
  $("no-report").hidden = Boolean(model.metrics);
  $("report").hidden = !model.has_report;
}

// A model that was trained on fields is asked by fields.
function useFields(fields) {
  $("inputs").replaceChildren(...fields.flatMap((field, i) => {
    const label = make("label", field);
    const input = make("textarea");
    input.id = label.htmlFor = i ? `text-${i}` : "text";
    input.rows = i === fields.length - 1 ? 5 : 2;
    input.spellcheck = false;
    input.dataset.field = field;
    return [label, input];
  }));
}

const inputs = () => [...$("inputs").querySelectorAll("textarea")];
const current = () => (session.model?.fields
  ? Object.fromEntries(inputs().map((input) => [input.dataset.field, input.value]))
  : $("text").value);

function offerExamples(examples) {
  $("examples").replaceChildren(make("span", "Try:", "soft"), ...examples.map((text) => {
    const words = typeof text === "string" ? text : Object.values(text).join(" ");
    const button = make("button", words.length > 70 ? `${words.slice(0, 69)}…` : words);
    button.type = "button";
    button.addEventListener("click", () => {
      inputs().forEach((input) => { input.value = typeof text === "string" ? text : text[input.dataset.field] || ""; });
      chosen = 0;
      predict();
    });
    return button;
  }));
  $("examples").hidden = !examples.length;
}

function showTail() {
  const value = Number($("tail").value);
  $("tail-value").textContent = value === 0 ? "most probable first" : `rare labels come forward, ${value.toFixed(2)}`;
  const curve = session.model?.lean_curve;
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

function clear() {
  session.asked = null;
  forget();
  $("labels").replaceChildren();
  $("order").hidden = $("take").hidden = true;
  $("answers").ariaBusy = "false";
  $("status").textContent = "Labels appear here as you type.";
}

async function predict() {
  const text = current();
  running?.abort();
  if (isEmpty(text)) return clear();
  const mine = (running = new AbortController());
  const began = performance.now();
  $("answers").ariaBusy = "true";
  try {
    const asks = { text, k: Number($("k").value), tail: Number($("tail").value) };
    const [result] = (await post("/predict", asks, mine.signal)).results;
    if (mine !== running) return;
    session.asked = { text, labels: result.labels };
    show(result.known_terms, performance.now() - began);
  } catch (error) {
    if (error.name === "AbortError") return;
    $("status").textContent = error.message;
  }
  $("answers").ariaBusy = "false";
}

function show(known, milliseconds) {
  const { labels } = session.asked;
  const probable = session.model.scores === "probability";
  chosen = Math.min(chosen, Math.max(labels.length - 1, 0));
  const most = Math.max(...labels.map((item) => item.score), 1e-9);
  const least = Math.min(...labels.map((item) => item.score), 0);
  $("labels").replaceChildren(...labels.map((item, i) => {
    const button = make("button");
    button.type = "button";
    const share = probable ? item.score : (item.score - least) / (most - least || 1);
    button.style.setProperty("--share", `${100 * Math.max(0, Math.min(1, share))}%`);
    button.append(shown(item), make("span", score(item.score), "score"));
    button.addEventListener("click", () => choose(i));
    const entry = make("li");
    entry.append(button);
    return entry;
  }));
  const unknown = known === 0 ? "None of these words was seen in training: a guess. " : "";
  const n = labels.length;
  $("status").textContent = `${unknown}${n} ${n === 1 ? "label" : "labels"} in ${milliseconds.toFixed(0)} ms.`;
  $("take").hidden = !n;
  const ordered = labels.every((item, i) => !i || item.score <= labels[i - 1].score);
  $("order").hidden = ordered;
  $("order").textContent = Number($("tail").value)
    ? `Rare labels were brought forward: the order is not that of the ${probable ? "percentages" : "scores"}.`
    : `The model's decision rule chose these labels: the order is not that of the ${probable ? "percentages" : "scores"}.`;
  choose(chosen);
}

function choose(i) {
  chosen = i;
  [...$("labels").querySelectorAll("button")].forEach((button, j) =>
    button.setAttribute("aria-pressed", String(i === j)));
  return why(session.asked?.labels[i]);
}

// Answers to take along: one line per label.
const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const asCsv = () => [
  "rank,label,text,score",
  ...session.asked.labels.map((item, i) => [i + 1, cell(item.label), cell(item.text || ""), item.score].join(",")),
].join("\n") + "\n";

async function copy() {
  const lines = session.asked.labels.map((item) => (item.text ? `${item.label}\t${item.text}` : item.label)).join("\n");
  try {
    await navigator.clipboard.writeText(lines);
  } catch { // a page without TLS may not; the old way still works
    const box = make("textarea", lines);
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  $("copy").textContent = "Copied";
  setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
}

function download() {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  link.download = "labels.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
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
$("inputs").addEventListener("input", later(() => { chosen = 0; predict(); }, 150));
$("tail").addEventListener("input", () => { showTail(); chosen = 0; predict(); });
$("k").addEventListener("change", predict);
$("copy").addEventListener("click", copy);
$("download").addEventListener("click", download);
$("query").addEventListener("input", later(find, 150));
$("report").addEventListener("toggle", report);
about().then(() => { predict(); find(); }).catch((error) => { $("status").textContent = error.message; });
