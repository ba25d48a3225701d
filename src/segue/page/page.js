// The page: a window on this browser's lane, which shows what the gateway sent.
import { useGateway } from "/page/live.js";
import { html, render, useEffect, useRef, useState } from "/page/vendored/preact-htm.js";
import { Say } from "/page/say.js";
import { Side } from "/page/side.js";
import { Talk } from "/page/talk.js";

// Accounts that can't be reached now, and dead letters, looked up while the page is seen.
function useTrouble() {
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    const look = async () => {
      if (document.hidden) return;
      try {
        const { accounts = {}, letters = 0 } = await (await fetch("/healthz", { cache: "no-store" })).json();
        const broken = Object.keys(accounts).filter((name) => accounts[name].reach === "broken").join(", ");
        const dead = letters === 1 ? "1 dead letter" : `${letters} dead letters`;
        setTrouble([broken && `Not connected now: ${broken}`, letters && `${dead}: segue letters list`].filter(Boolean).join(" · "));
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
  const { now, say, command, send, tell } = useGateway();
  const trouble = useTrouble();
  const [open, setOpen] = useState(false);
  const menu = useRef(null);
  const away = now.state !== "here";
  const elsewhere = now.state === "elsewhere";
  const state = elsewhere ? "Open Segue at the address that it listens on" : away ? "Connecting…"
    : now.waiting.length > 1 ? `${now.waiting.length} waiting` : now.waiting.length || now.growing ? "Answering…" : "";
  const { id, title } = now.session ?? {}, name = title || now.sessions.find((s) => s.id === id)?.text;
  useEffect(() => { document.title = name ? `${name} · Segue` : "Segue"; }, [name]);
  return html`<div class="page">
    <${Side} now=${now} command=${command} send=${send} tell=${tell} away=${away} open=${open}
      close=${() => { setOpen(false); if (open) menu.current.focus(); }} />
    <main class="chat" onClick=${() => open && setOpen(false)}>
      <header><button ref=${menu} class="menu" aria-label="Sessions" aria-expanded=${open} onClick=${(e) => { e.stopPropagation(); setOpen(!open); }}>☰</button>
        <h1>${name || "Untitled session"}</h1><span class=${"state" + (away ? " away" : "")} role="status">${state}</span>
        ${now.session && html`<button class="handoff" disabled=${away} onClick=${() => command("/handoff")}>Hand off</button>`}</header>
      ${trouble && html`<p class="trouble" role="status">${trouble}</p>`}
      <${Talk} now=${now} send=${send} command=${command} />
      <${Say} now=${now} say=${say} command=${command} away=${away} />
    </main>
  </div>`;
}

render(html`<${Page} />`, document.getElementById("page"));
