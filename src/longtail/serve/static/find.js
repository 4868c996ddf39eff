// The search for labels: each opens what it is, and why it is not among the answers.
import { $, call, make, session, shown } from "./session.js";
import { whyNot } from "./why.js";

let searching = null;

export async function find() {
  const query = $("query").value;
  searching?.abort();
  const mine = (searching = new AbortController());
  try {
    const response = await call(`/labels?limit=8&q=${encodeURIComponent(query)}`, { signal: mine.signal });
    const { labels } = await response.json();
    $("found").replaceChildren(...labels.map(entry));
    if (!labels.length) $("found").replaceChildren(make("li", "no label has this in its name", "soft"));
  } catch (error) {
    if (error.name !== "AbortError") $("found").replaceChildren(make("li", error.message, "soft"));
  }
}

function entry(item) {
  const box = make("details");
  const head = make("summary");
  head.append(shown(item), make("span", count(item.training_texts), "score soft"));
  const inside = make("div", undefined, "inside");
  box.append(head, inside);
  box.addEventListener("toggle", () => { if (box.open) open(item, inside); });
  const line = make("li");
  line.append(box);
  return line;
}

const count = (n) => `${n.toLocaleString()} ${n === 1 ? "text" : "texts"}`;

function open(item, inside) {
  const rare = item.training_texts < 5 ? " It is rare: the model knows little about it." : "";
  const about = `The label ${item.label}, seen with ${count(item.training_texts)} in training.${rare}`;
  const answer = make("div");
  const button = make("button", "Why not this label?");
  button.type = "button";
  button.disabled = !session.asked;
  button.addEventListener("click", () => whyNot(item, answer));
  inside.replaceChildren(make("p", about), button, answer);
  if (!session.asked) inside.append(make("p", "Type a text first.", "soft"));
}
