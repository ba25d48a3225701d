// The wire: what the gateway sent so far, and what to send it. A lost connection opens anew and is shown all of it again,
// so nothing is lost or doubled. What was typed and not yet accepted is kept and sent again.
import { ask, reduce, start } from "/page/frames.js";
import { useEffect, useReducer, useRef } from "/page/vendored/preact-htm.js";

const LARGEST = 4 * 1024 * 1024; // Bytes of a frame that the gateway reads.
const PAGE = 50; // Entries that are shown at first, and more whenever somebody scrolls up to the first of them.
const PAUSE = 50; // Milliseconds between two looks at an answer that grows.

// crypto.randomUUID is there only over https or on this machine itself.
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// Words of an answer come one by one: those that come quickly are shown together.
function unhurried(tell) {
  let grown = null, timer = 0;
  const flush = () => {
    clearTimeout(timer);
    if (grown) tell(grown);
    grown = null;
  };
  return (frame) => {
    if (frame.kind !== "growing") {
      flush();
      tell(frame);
    } else if (grown && !frame.begins) grown = { ...grown, text: grown.text + frame.text };
    else {
      if (!grown) timer = setTimeout(flush, PAUSE);
      grown = frame;
    }
  };
}

// The address of the page names the session that is shown, and whoever opens one with a name is brought there.
function addresses(send) {
  const named = () => location.hash.slice(1);
  let wanted = named() || localStorage.getItem("wanted") || "", asked = false, shown = "";
  localStorage.removeItem("wanted");
  const go = () => { asked = true; send(ask.resume(wanted)); };
  const settle = () => {
    wanted = "";
    if (shown !== named()) history[named() ? "pushState" : "replaceState"](null, "", shown ? `#${shown}` : location.pathname);
  };
  return {
    opened: () => { asked = false; },
    turned: () => { wanted = named(); if (wanted && wanted !== shown) go(); },
    saw: (frame) => {
      if (frame.kind === "transcript" || frame.kind === "entries") {
        shown = frame.session?.id ?? "";
        if (wanted && wanted !== shown && !asked) go();
        else if (!wanted || wanted === shown) settle();
      } else if (frame.kind === "refused") settle(); // It can't be had, and the notice says why.
    },
  };
}

export function useGateway() {
  const [now, tell] = useReducer(reduce, start);
  const socket = useRef(null);
  const unsent = useRef([]);
  unsent.current = now.unsent.filter((m) => !m.accepted);
  const send = (frame) => socket.current?.readyState === WebSocket.OPEN && socket.current.send(JSON.stringify(frame));
  useEffect(() => {
    let wait = 250, timer = 0, over = false;
    const address = addresses(send);
    const connect = () => {
      const own = new WebSocket(location.origin.replace(/^http/, "ws") + "/live"), show = unhurried(tell);
      socket.current = own;
      own.onopen = () => {
        wait = 250;
        address.opened();
        tell({ kind: "state", state: "here" });
        send(ask.open(PAGE));
        for (const m of unsent.current) send(ask.say(m.id, m.text));
        send(ask.sessions());
        send(ask.commands());
      };
      own.onmessage = (event) => {
        const frame = JSON.parse(event.data);
        show(frame);
        address.saw(frame);
        if (frame.kind === "transcript" || frame.kind === "entries") send(ask.sessions());
      };
      own.onclose = (event) => {
        if (over) return;
        if (event.code === 4401) return location.reload();
        if (event.code === 4403) return tell({ kind: "state", state: "elsewhere" });
        tell({ kind: "state", state: "away" });
        timer = setTimeout(connect, wait);
        wait = Math.min(wait * 2, 5000);
      };
    };
    connect();
    addEventListener("popstate", address.turned);
    return () => { over = true; clearTimeout(timer); removeEventListener("popstate", address.turned); socket.current?.close(); };
  }, []);
  // What somebody says stays on the screen until it is accepted; returns why it can't be said, if it can't.
  const say = (text) => {
    const message = { id: newId(), text };
    const size = new TextEncoder().encode(JSON.stringify(ask.say(message.id, text))).length;
    if (size > LARGEST) return `That has ${megabytes(size)} MB, and a message can have ${megabytes(LARGEST)}. Shorten it, or send it in parts.`;
    tell({ kind: "unsent", message });
    send(ask.say(message.id, text));
    return "";
  };
  // What a button says for somebody isn't shown as theirs.
  const command = (text) => send(ask.say(newId(), text));
  return { now, say, command, send, tell };
}

const megabytes = (bytes) => (bytes / 1024 / 1024).toFixed(1);
