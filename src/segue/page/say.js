// Where one writes: commands are offered while they are typed, and what can't be sent stays, with the reason.
import { html, useEffect, useRef, useState } from "/page/vendored/preact-htm.js";

// What can be typed from here: a command, or after /resume a title of one's own.
function offers(text, { commands, sessions }) {
  const command = /^\/(\S*)$/.exec(text), title = /^\/resume +(.*)$/i.exec(text);
  const begins = (word, typed) => word.toLowerCase().startsWith(typed.toLowerCase()) && word !== typed;
  if (command) return commands.filter((c) => begins(c.name, command[1])).map((c) => ({ fill: `/${c.name} `, shown: `/${c.name} ${c.usage}`, does: c.does }));
  if (title) return sessions.filter((s) => s.title && begins(s.title, title[1])).map((s) => ({ fill: `/resume ${s.title}`, shown: s.title, does: s.text }));
  return [];
}

// A phone's keyboard has no Shift+Enter: there Enter begins a new line, and the button sends.
const phone = matchMedia("(hover: none) and (pointer: coarse)");

export function Say({ now, say, command, away }) {
  const box = useRef(null);
  const [text, write] = useState("");
  const [chosen, choose] = useState(0);
  const [shut, close] = useState(false);
  const [refused, refuse] = useState("");
  const offered = shut ? [] : offers(text, now).slice(0, 50);
  useEffect(() => document.getElementById(`offer${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  useEffect(() => { box.current.style.height = "auto"; box.current.style.height = box.current.scrollHeight + 2 + "px"; }, [text, away]);
  const type = (typed) => { write(typed); choose(0); close(false); refuse(""); };
  const send = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    const why = say(text);
    if (why) refuse(why);
    else type("");
    box.current.focus();
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (offered.length && ["ArrowDown", "ArrowUp", "Tab", "Escape"].includes(event.key) && !event.shiftKey) {
      event.preventDefault();
      if (event.key === "Tab") type(offered[chosen].fill);
      else if (event.key === "Escape") close(true);
      else choose((chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    } else if (event.key === "Enter" && !event.shiftKey && !phone.matches) send(event);
  };
  return html`<form class="say" onSubmit=${send}>
    ${offered.length > 0 && html`<ul class="offered" id="offered" role="listbox" aria-label="What can be typed">
      ${offered.map((o, i) => html`<li id=${`offer${i}`} role="option" aria-selected=${i === chosen ? "true" : "false"}
        onMouseDown=${(e) => { e.preventDefault(); type(o.fill); }}><b>${o.shown}</b> <small>${o.does}</small></li>`)}</ul>`}
    ${refused && html`<p class="refused" role="alert">${refused}</p>`}
    <textarea ref=${box} rows="1" value=${text} aria-label="Message" enterkeyhint=${phone.matches ? "enter" : "send"}
      placeholder=${away ? "You can go on writing; it is sent when Segue is back" : "Write a message"}
      aria-autocomplete="list" aria-controls="offered" aria-activedescendant=${offered.length ? `offer${chosen}` : undefined}
      onInput=${(e) => type(e.target.value)} onKeyDown=${key} autofocus></textarea>
    ${now.waiting.length && !text.trim() && !away
      ? html`<button type="button" onClick=${() => { command("/stop"); box.current.focus(); }}>Stop</button>`
      : html`<button disabled=${!text.trim()}>Send</button>`}
  </form>`;
}
