// The list of one's sessions, with a search.
import { ask } from "/page/frames.js";
import { html, useEffect, useRef, useState } from "/page/vendored/preact-htm.js";

export function Side({ now, command, send, tell, away, open, close }) {
  const [words, search] = useState("");
  const box = useRef(null);
  // Not the search field, which would bring up a phone's keyboard over the list.
  useEffect(() => { if (open) box.current.focus(); }, [open]);
  useEffect(() => {
    if (!words.trim()) { tell({ kind: "unsought" }); return; }
    const timer = setTimeout(() => send(ask.search(words)), 150);
    return () => clearTimeout(timer);
  }, [words]);
  const shown = now.found && words.trim() ? now.found : now.sessions;
  const rename = (session, title) => {
    if (session.id !== now.session?.id) send(ask.resume(session.id));
    command(`/title ${title}`);
  };
  const shut = (session) => {
    command(`/sessions close ${session.id}`);
    send(ask.sessions());
  };
  const item = (s) => html`<${Session} key=${s.id} session=${s} current=${s.id === now.session?.id} away=${away} rename=${rename} shut=${shut} open=${() => { search(""); close(); }} />`;
  const closed = shown.filter((s) => s.closed);
  return html`<nav ref=${box} tabindex="-1" class=${"side" + (open ? " open" : "")} aria-label="Sessions" onKeyDown=${(e) => open && e.key === "Escape" && close()}>
    <header><img src="/page/icon.svg" alt="" />Segue</header>
    <input type="search" placeholder="Search your sessions" aria-label="Search your sessions" value=${words} onInput=${(e) => search(e.target.value)} />
    <ul>${shown.filter((s) => !s.closed).map(item)}
      ${closed.length > 0 && html`<li><details open=${now.found && words.trim()}><summary>Closed</summary><ul>${closed.map(item)}</ul></details></li>`}
      ${now.found && words.trim() && !shown.length && html`<li class="empty">Nothing found.</li>`}</ul>
    <button class="new" onClick=${() => { command("/new"); close(); }}>New session</button>
    <form method="post" action="/signout"><button class="leave">Sign out</button></form>
  </nav>`;
}

function Session({ session, current, away, rename, shut, open }) {
  const [renaming, setRenaming] = useState(false);
  const { id, title, text, closed } = session, name = title || text || "Untitled";
  if (renaming) return html`<li><${Name} title=${title ?? ""} done=${(given) => { setRenaming(false); if (given && given !== title) rename(session, given); }} /></li>`;
  return html`<li><a href=${`#${id}`} aria-current=${current ? "true" : "false"} onClick=${open}>${name}${title && html`<small>${text}</small>`}</a>
    <span class="tools"><button aria-label=${`Rename ${name}`} title="Rename" disabled=${away} onClick=${() => setRenaming(true)}>✎</button>
      ${!closed && html`<button aria-label=${`Close ${name}`} title="Close: it can be opened again" disabled=${away} onClick=${() => shut(session)}>✕</button>`}</span></li>`;
}

function Name({ title, done }) {
  const box = useRef(null);
  useEffect(() => box.current.select(), []);
  const key = (event) => {
    if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    done(event.key === "Enter" ? event.target.value.trim() : "");
  };
  return html`<input ref=${box} class="name" aria-label="Title" maxlength="100" value=${title} onKeyDown=${key} onBlur=${() => done("")} />`;
}
