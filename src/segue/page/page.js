// The page: a window on this browser's lane. What it shows is what the gateway sent; a lost connection opens anew and is
// shown all of it again, so nothing is lost or doubled. What was typed and not yet accepted is kept and sent again.
import { markdown } from "/page/markdown.js";
import { html, render, useEffect, useMemo, useReducer, useRef, useState } from "/page/preact-htm.js";

// crypto.randomUUID is there only over https or on this machine itself.
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const start = { session: null, transcript: [], growing: "", waiting: [], notices: [], handoff: null, unsent: [], sessions: [], commands: [], found: null, state: "connecting" };

function reduce(now, frame) {
  if ("state" in frame) return { ...now, state: frame.state };
  if ("unsent" in frame) return { ...now, unsent: [...now.unsent, frame.unsent] };
  if ("accepted" in frame) return { ...now, unsent: now.unsent.map((m) => (m.id === frame.accepted ? { ...m, accepted: true } : m)) };
  if ("transcript" in frame) return { ...now, session: frame.session, transcript: frame.transcript, growing: "", notices: [], handoff: frame.session ? null : now.handoff };
  if ("handoff" in frame) return { ...now, handoff: frame.handoff };
  if ("entries" in frame) return { ...now, session: frame.session, transcript: [...now.transcript, ...frame.entries], growing: "" };
  if ("growing" in frame) return { ...now, growing: frame.growing };
  if ("notice" in frame) return { ...now, notices: [...now.notices, { text: frame.notice, files: frame.files ?? [], after: now.transcript.length }] };
  if ("invitation" in frame) return { ...now, notices: [...now.notices, { ...invited(frame.invitation), after: now.transcript.length }] };
  // What was accepted is shown by the gateway from here on: among what waits, or in the transcript.
  if ("waiting" in frame)
    return { ...now, waiting: frame.waiting, growing: frame.waiting.length ? now.growing : "", unsent: now.unsent.filter((m) => !m.accepted) };
  if ("sessions" in frame) return { ...now, sessions: frame.sessions };
  if ("commands" in frame) return { ...now, commands: frame.commands };
  if ("found" in frame) return { ...now, found: frame.found };
  return now;
}

// A conversation on its way to another place, or gone there; why one came back is said in a notice.
function moved({ state, step, to }) {
  if (state === "done") return `This conversation goes on in ${to}. Write here to begin another.`;
  return state === "failed" || state === "cancelled" ? "" : `To ${to}: ${step} …`;
}

// How to take the conversation along: a link where the platform has such links, else a code to type.
function invited({ code, links, typed }) {
  const lines = Object.entries(links).map(([place, link]) => `To take this conversation along to ${place}, open ${link}`);
  if (typed.length) lines.push(`To take it along to ${typed.join(", ")}, send /link ${code} to me in a private chat there.`);
  return { text: [...lines, "Whoever uses that becomes you, within ten minutes: show it to nobody."].join("\n"), files: [] };
}

function useGateway() {
  const [now, tell] = useReducer(reduce, start);
  const socket = useRef(null);
  const unsent = useRef([]);
  const invites = useRef(false); // Whether a way to take the conversation along belongs below the next notice.
  unsent.current = now.unsent.filter((m) => !m.accepted);
  useEffect(() => {
    let wait = 250, timer = 0, over = false;
    const connect = () => {
      const own = new WebSocket(location.origin.replace(/^http/, "ws") + "/live");
      socket.current = own;
      own.onopen = () => {
        wait = 250;
        tell({ state: "here" });
        for (const m of unsent.current) own.send(JSON.stringify({ say: m.text, id: m.id }));
        own.send(JSON.stringify({ list: true }));
        own.send(JSON.stringify({ commands: true }));
      };
      own.onmessage = (event) => {
        const frame = JSON.parse(event.data);
        tell(frame);
        if ("transcript" in frame || "entries" in frame) own.send(JSON.stringify({ list: true }));
        if ("notice" in frame && invites.current) {
          invites.current = false;
          own.send(JSON.stringify({ invite: true }));
        }
      };
      own.onclose = (event) => {
        if (over) return;
        if (event.code === 4401) return location.reload();
        if (event.code === 4403) return tell({ state: "elsewhere" });
        tell({ state: "away" });
        timer = setTimeout(connect, wait);
        wait = Math.min(wait * 2, 5000);
      };
    };
    connect();
    return () => { over = true; clearTimeout(timer); socket.current?.close(); };
  }, []);
  const send = (frame) => socket.current?.readyState === WebSocket.OPEN && socket.current.send(JSON.stringify(frame));
  const say = (text) => {
    const message = { id: newId(), text };
    tell({ unsent: message });
    send({ say: text, id: message.id });
    invites.current ||= text.trim() === "/handoff";
  };
  return { now, say, send, tell };
}

function Side({ now, send, tell, open, close }) {
  const [words, search] = useState("");
  const box = useRef(null);
  // Not the search field, which would bring up a phone's keyboard over the list.
  useEffect(() => { if (open) box.current.focus(); }, [open]);
  useEffect(() => {
    if (!words.trim()) { tell({ found: null }); return; }
    const timer = setTimeout(() => send({ search: words }), 150);
    return () => clearTimeout(timer);
  }, [words]);
  const shown = now.found && words.trim() ? now.found : now.sessions;
  return html`<nav ref=${box} tabindex="-1" class=${"side" + (open ? " open" : "")} aria-label="Sessions" onKeyDown=${(e) => open && e.key === "Escape" && close()}>
    <header><img src="/page/icon.svg" alt="" />Segue</header>
    <input type="search" placeholder="Search your sessions" aria-label="Search your sessions" value=${words} onInput=${(e) => search(e.target.value)} />
    <ul>${shown.map((s) => html`<li><button aria-current=${s.id === now.session?.id ? "true" : "false"}
        onClick=${() => { send({ resume: s.id }); search(""); close(); }}>
        ${s.title || s.text || "Untitled"}${s.title && html`<small>${s.text}</small>`}</button></li>`)}
      ${now.found && words.trim() && !shown.length && html`<li class="empty">Nothing found.</li>`}</ul>
    <button class="new" onClick=${() => { send({ say: "/new", id: newId() }); close(); }}>New session</button>
  </nav>`;
}

const ADDRESS = /(https?:\/\/[^\s]*[^\s.,;:!?)])/;

// What Segue itself says; several lines are read from the left, like any list.
function Notice({ text, files }) {
  const words = text.split(ADDRESS).map((part, n) => (n % 2 ? html`<a href=${part} target="_blank" rel="noopener noreferrer">${part}</a>` : part));
  return html`<div class=${"notice" + (text.includes("\n") ? " lines" : "")}>${words}<${Files} files=${files} /></div>`;
}

// Files in the data folder can be had; of others the name is all there is.
function Files({ files = [] }) {
  return files.map(({ name, media, where }) => {
    if (!where.startsWith("files/")) return html`<p class="file">${name}</p>`;
    const to = `/${where}/${encodeURIComponent(name)}`;
    const picture = /^image\/(png|jpeg|gif|webp)$/.test(media) && /\.(png|jpe?g|gif|webp)$/i.test(name);
    return html`<a class="file" href=${to} download=${name}>${picture ? html`<img src=${to} alt=${name} loading="lazy" />` : name}</a>`;
  });
}

function Said({ entry, named, state = "" }) {
  const shown = useMemo(() => (entry.role === "agent" ? markdown(entry.text, state === "grows") : entry.text), [entry.role, entry.text, state]);
  const name = entry.role === "agent" ? html`<b class="hidden">Agent</b>` : named && html`<b>${entry.name}</b>`;
  return html`<div class=${`said ${entry.role} ${state}`} aria-busy=${state === "grows"}>${entry.role !== "gateway" && name}${shown}<${Files} files=${entry.files} /></div>`;
}

function Talk({ now }) {
  const box = useRef(null), stays = useRef(true), last = useRef({});
  const waiting = [...now.waiting.map((entry) => ({ ...entry, role: "person" })), ...now.unsent.map((m) => ({ role: "person", text: m.text, unsent: !m.accepted }))];
  // Whoever scrolled up to read isn't pulled down by what comes; what one says oneself is always shown.
  const stick = () => { if (stays.current) box.current.scrollTop = box.current.scrollHeight; };
  useEffect(stick);
  useEffect(() => {
    const sizes = new ResizeObserver(stick);
    sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => { stays.current = true; stick(); }, [now.unsent.length, now.session?.id]);
  // What grows, and a window that changes its size, scroll too; only who moves up in what stands still wants to read there.
  const scrolled = ({ target: { scrollTop: top, scrollHeight: all, clientHeight: high, clientWidth: wide } }) => {
    const before = last.current, still = before.all === all && before.high === high && before.wide === wide;
    last.current = { top, all, high, wide };
    if (all - top - high < 40) stays.current = true;
    else if (still && top < before.top) stays.current = false;
  };
  const notices = (n) => now.notices.filter((x) => x.after === n).map((x) => html`<${Notice} ...${x} />`);
  const names = new Set([...now.transcript, ...now.waiting].filter((e) => e.role === "person").map((e) => e.name));
  const empty = !now.transcript.length && !waiting.length && !now.notices.length && !now.growing && !now.handoff;
  return html`<section ref=${box} class="talk" aria-label="Conversation" role="log" aria-live="polite" tabindex="0" onScroll=${scrolled}>
    ${empty && html`<p class="empty">Say something to begin. <br />/help lists what you can type.</p>`}
    ${notices(0)}
    ${now.transcript.map((entry, i) => html`<${Said} key=${i} entry=${entry} named=${names.size > 1} />${notices(i + 1)}`)}
    ${waiting.map((entry) => html`<${Said} entry=${entry} named=${names.size > 1} state=${entry.unsent ? "unsent" : ""} />`)}
    ${now.growing && html`<${Said} entry=${{ role: "agent", text: now.growing }} state="grows" />`}
    ${now.waiting.length > 0 && !now.growing && html`<div class="said agent thinks" role="img" aria-label="Answering"><i></i><i></i><i></i></div>`}
    ${now.handoff && moved(now.handoff) && html`<p class="notice" role="status">${moved(now.handoff)}</p>`}
  </section>`;
}

// What can be typed from here: a command, or after /resume a title of one's own.
function offers(text, { commands, sessions }) {
  const command = /^\/(\S*)$/.exec(text), title = /^\/resume +(.*)$/i.exec(text);
  const begins = (word, typed) => word.toLowerCase().startsWith(typed.toLowerCase()) && word !== typed;
  if (command) return commands.filter((c) => begins(c.name, command[1])).map((c) => ({ fill: `/${c.name} `, shown: `/${c.name} ${c.usage}`, does: c.does }));
  if (title) return sessions.filter((s) => s.title && begins(s.title, title[1])).map((s) => ({ fill: `/resume ${s.title}`, shown: s.title, does: s.text }));
  return [];
}

function Say({ now, say, send: tell, away }) {
  const box = useRef(null);
  const [text, write] = useState("");
  const [chosen, choose] = useState(0);
  const [shut, close] = useState(false);
  const offered = shut ? [] : offers(text, now).slice(0, 50);
  useEffect(() => document.getElementById(`offer${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  useEffect(() => { box.current.style.height = "auto"; box.current.style.height = box.current.scrollHeight + 2 + "px"; }, [text]);
  const type = (typed) => { write(typed); choose(0); close(false); };
  const send = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    say(text);
    type("");
    box.current.focus();
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (offered.length && ["ArrowDown", "ArrowUp", "Tab", "Escape"].includes(event.key) && !event.shiftKey) {
      event.preventDefault();
      if (event.key === "Tab") type(offered[chosen].fill);
      else if (event.key === "Escape") close(true);
      else choose((chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    } else if (event.key === "Enter" && !event.shiftKey) send(event);
  };
  return html`<form class="say" onSubmit=${send}>
    ${offered.length > 0 && html`<ul class="offered" id="offered" role="listbox" aria-label="What can be typed">
      ${offered.map((o, i) => html`<li id=${`offer${i}`} role="option" aria-selected=${i === chosen ? "true" : "false"}
        onMouseDown=${(e) => { e.preventDefault(); type(o.fill); }}><b>${o.shown}</b> <small>${o.does}</small></li>`)}</ul>`}
    <textarea ref=${box} rows="1" value=${text} aria-label="Message" enterkeyhint="send" placeholder=${away ? "You can go on writing; it is sent when Segue is back" : "Write a message"}
      aria-autocomplete="list" aria-controls="offered" aria-activedescendant=${offered.length ? `offer${chosen}` : undefined}
      onInput=${(e) => type(e.target.value)} onKeyDown=${key} autofocus></textarea>
    ${now.waiting.length && !text.trim() && !away
      ? html`<button type="button" onClick=${() => { tell({ say: "/stop", id: newId() }); box.current.focus(); }}>Stop</button>`
      : html`<button disabled=${!text.trim()}>Send</button>`}
  </form>`;
}

// Accounts that can't be reached now, looked up while the page is seen.
function useTrouble() {
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    const look = async () => {
      if (document.hidden) return;
      try {
        const { accounts = {} } = await (await fetch("/healthz", { cache: "no-store" })).json();
        setTrouble(Object.keys(accounts).filter((name) => accounts[name].reach === "broken").join(", "));
      } catch { setTrouble(""); } // The gateway itself is away, which the page shows already.
    };
    look();
    const timer = setInterval(look, 10000);
    document.addEventListener("visibilitychange", look);
    return () => { clearInterval(timer); document.removeEventListener("visibilitychange", look); };
  }, []);
  return trouble;
}

function Page() {
  const { now, say, send, tell } = useGateway();
  const trouble = useTrouble();
  const [open, setOpen] = useState(false);
  const menu = useRef(null);
  const away = now.state !== "here";
  const elsewhere = now.state === "elsewhere";
  const state = elsewhere ? "Open Segue at the address that it listens on" : away ? "Connecting…"
    : now.waiting.length > 1 ? `${now.waiting.length} waiting` : now.waiting.length || now.growing ? "Answering…" : "";
  useEffect(() => { document.title = now.session?.title ? `${now.session.title} · Segue` : "Segue"; }, [now.session?.title]);
  return html`<div class="page">
    <${Side} now=${now} send=${send} tell=${tell} open=${open} close=${() => { setOpen(false); if (open) menu.current.focus(); }} />
    <main class="chat" onClick=${() => open && setOpen(false)}>
      <header><button ref=${menu} class="menu" aria-label="Sessions" aria-expanded=${open} onClick=${(e) => { e.stopPropagation(); setOpen(!open); }}>☰</button>
        <h1>${now.session?.title || "Untitled session"}</h1><span class=${"state" + (away ? " away" : "")} role="status">${state}</span></header>
      ${trouble && html`<p class="trouble" role="status">Not connected now: ${trouble}</p>`}
      <${Talk} now=${now} />
      <${Say} now=${now} say=${say} send=${send} away=${away} />
    </main>
  </div>`;
}

render(html`<${Page} />`, document.getElementById("page"));
