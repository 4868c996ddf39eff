// What the parts of the page share: the model, the last answers, the token, and how to ask.
export const $ = (id) => document.getElementById(id);
export const per = (x, digits = 1) => `${(100 * x).toFixed(digits)} %`;
export const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
export const named = (item) => item.text || item.label;
export const shown = (item) => {
  const name = make("span", named(item), "label-name");
  if (item.text) name.append(make("span", item.label, "label-text"));
  return name;
};
export const score = (value) => (session.model.scores === "probability" ? per(value) : value.toFixed(3));

export const session = {
  model: null,
  asked: null, // what the shown answers were asked for: { text, labels }
};

let token = sessionStorage.getItem("longtail-token") || "";

export async function call(path, options = {}) {
  for (;;) {
    const headers = { ...(options.headers || {}) };
    const used = token;
    if (used) headers.authorization = `Bearer ${used}`;
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) {
      if (!response.ok) {
        const problem = await response.json().catch(() => ({ detail: response.statusText }));
        throw new Error(problem.detail);
      }
      return response;
    }
    if (used === token) await askForToken(used !== "");
  }
}

export const post = async (path, body, signal) =>
  (await call(path, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })).json();

let asking = null; // one dialog, however many requests were refused
function askForToken(wrong) {
  asking ??= new Promise((done) => {
    const dialog = $("token-dialog");
    $("token-wrong").hidden = !wrong;
    $("token").value = "";
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

// The text as it is asked about, and as it is shown: where there are fields, one below the other.
export const isEmpty = (text) => !(typeof text === "string" ? text : Object.values(text).join("")).trim();
export const asShown = (text) => (typeof text === "string" ? text : Object.values(text).join("\n"));
