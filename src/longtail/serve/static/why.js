// Which words of the text speak for a label, or against it.
import { $, asShown, make, named, post, score, session } from "./session.js";

let explaining = null;

export function forget() {
  explaining?.abort();
  $("why").hidden = true;
  $("marked").hidden = true;
  $("legend").hidden = true;
}

async function explained(item, text, signal) {
  item.explanation ??= await post("/explain", { text, label: item.label }, signal);
  return item.explanation;
}

// One of the answers.
export async function why(item) {
  forget();
  if (!item) return;
  const { text } = session.asked;
  const mine = (explaining = new AbortController());
  show(`Why “${named(item)}”?`, text, [], "");
  try {
    const { spans, sources } = await explained(item, text, mine.signal);
    if (mine !== explaining) return;
    const words = spans.length
      ? `Shaded words speak for “${named(item)}”, dashed ones against it.`
      : `No single word decides for “${named(item)}”.`;
    show(`Why “${named(item)}”?`, text, spans, [words, ...told(sources)].join(" "));
  } catch (error) {
    if (error.name !== "AbortError") $("legend").textContent = error.message;
  }
}

// A label from the search, whether it is among the answers or not.
export async function whyNot(item, into) {
  const { text, labels } = session.asked;
  const place = labels.findIndex((other) => other.label === item.label);
  into.replaceChildren(make("p", "Looking at your text…", "soft"));
  const mine = (explaining = new AbortController());
  try {
    const { spans, terms, sources } = await explained({ label: item.label }, text, mine.signal);
    const lines = [];
    if (place >= 0) {
      lines.push(`It is answer ${place + 1}, with ${score(labels[place].score)}.`);
    } else if (session.model.can_filter) {
      const answer = await post("/predict", { text, k: 1, include: [item.label] }, mine.signal);
      const own = answer.results[0].labels[0];
      const last = labels.at(-1);
      lines.push(own
        ? `It gets ${score(own.score)}${last ? `; the last answer shown has ${score(last.score)}` : ""}.`
        : "The model gives it no score for this text.");
    }
    const words = (sign) => terms.filter((term) => sign * term.weight > 0).slice(0, 6).map((term) => term.term);
    const [pro, contra] = [words(1), words(-1)];
    lines.push(pro.length ? `For it: ${pro.join(", ")}.` : "No word of your text speaks for it.");
    if (contra.length) lines.push(`Against it: ${contra.join(", ")}.`);
    lines.push(...told(sources));
    if (mine !== explaining) return;
    into.replaceChildren(...lines.map((line) => make("p", line)));
    show(`${place >= 0 ? "Why" : "Why not"} “${named(item)}”?`, text, spans, lines.join(" "));
  } catch (error) {
    if (error.name !== "AbortError") into.replaceChildren(make("p", error.message, "soft"));
  }
}

// What every part of a fused model says.
function told(sources) {
  if (!sources) return [];
  const each = sources.map(({ part, probability, rank }) =>
    rank ? `${part} ${score(probability)}, place ${rank}` : `${part} not at all`);
  return [`By its parts: ${each.join("; ")}.`];
}

function show(title, text, spans, legend) {
  const characters = Array.from(asShown(text)); // spans count code points, not UTF-16 units
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
  $("why-title").textContent = title;
  $("marked").replaceChildren(...parts);
  $("legend").textContent = legend;
  $("why").hidden = $("marked").hidden = $("legend").hidden = false;
}
