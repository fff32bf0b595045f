// Keeps the open page true: the server sends the items that changed, and actions answer without leaving the page.
"use strict";

const connection = document.getElementById("connection");
const result = document.getElementById("result");
const waiting = new Map(); // Items that a person is using, with what they become afterwards.
let source = null;

function show(state, text) {
  connection.className = "connection " + state;
  connection.querySelector(".text").textContent = text;
}

// An item is in use while something is typed in it, or a form in it is open.
function isInUse(item) {
  const focused = item.contains(document.activeElement) && document.activeElement.matches("textarea, input, select");
  const typed = [...item.querySelectorAll("textarea")].some((field) => field.value !== field.defaultValue);
  return focused || typed || item.querySelector("details[open]") !== null;
}

function fromHtml(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function replace(item, html) {
  const controls = "a, button, summary, [tabindex]";
  const place = [...item.querySelectorAll(controls)].indexOf(document.activeElement);
  const next = fromHtml(html);
  item.replaceWith(next);
  if (place >= 0) next.querySelectorAll(controls)[place]?.focus();
  return next;
}

function apply(patch) {
  const region = document.querySelector(`[data-region="${patch.id}"]`);
  if (!region) return;
  const atEnd = region.scrollTop + region.clientHeight >= region.scrollHeight - 8;
  let at = region.firstElementChild;
  for (const [id, version] of patch.order) {
    let item = document.getElementById(id);
    item?.classList.remove("stale");
    if (!item) {
      item = fromHtml(patch.html[id]);
      region.insertBefore(item, at);
    } else if (item.dataset.v !== version && patch.html[id]) {
      if (isInUse(item)) waiting.set(id, patch.html[id]);
      else {
        waiting.delete(id);
        const isNext = item === at;
        item = replace(item, patch.html[id]);
        if (isNext) at = item;
      }
    }
    if (item === at) at = at.nextElementSibling;
    else if (!isInUse(item)) region.insertBefore(item, at);
  }
  const wanted = new Set(patch.order.map(([id]) => id));
  for (const item of [...region.children]) {
    if (wanted.has(item.id)) continue;
    waiting.delete(item.id);
    if (isInUse(item)) item.classList.add("stale");
    else item.remove();
  }
  if (atEnd && "follow" in region.dataset) region.scrollTop = region.scrollHeight;
}

function settle() {
  for (const [id, html] of waiting) {
    const item = document.getElementById(id);
    if (item && isInUse(item)) continue;
    waiting.delete(id);
    if (item) replace(item, html);
  }
  document.querySelectorAll(".stale").forEach((item) => isInUse(item) || item.remove());
}

function connect() {
  if (source || document.hidden) return;
  source = new EventSource(document.body.dataset.stream);
  source.addEventListener("patch", (event) => {
    JSON.parse(event.data).forEach(apply);
    show("live", "live");
  });
  source.onerror = () => {
    const ended = source.readyState === EventSource.CLOSED;
    show("lost", ended ? "ended: start liza web again" : "connecting");
  };
}

// A hidden page needs no stream; browsers allow only a few at once.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else connect();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  // By their attributes: a field of the form may have the same name as a property.
  if (form.getAttribute("method") !== "post") return;
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { "X-Fragment": "1" } });
    result.replaceChildren(fromHtml(await answer.text()) ?? "");
    if (answer.ok) {
      form.reset();
      for (let open = form.closest("details"); open; open = open.parentElement.closest("details")) open.open = false;
    }
  } catch {
    result.textContent = "The server did not answer; it may have ended.";
  }
  button.disabled = false;
  const close = document.createElement("button");
  close.className = "close";
  close.textContent = "Close";
  close.onclick = () => result.replaceChildren();
  result.append(close);
  settle();
});

document.addEventListener("focusout", () => setTimeout(settle));
document.addEventListener("toggle", settle, true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    result.replaceChildren();
    document.querySelectorAll("details.menu[open]").forEach((menu) => menu.removeAttribute("open"));
  }
});
document.querySelectorAll("[data-follow]").forEach((region) => (region.scrollTop = region.scrollHeight));
connect();
