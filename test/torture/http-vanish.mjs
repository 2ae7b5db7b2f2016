import { once } from "node:events";
import { connect } from "node:net";

/**
 * A client that disconnects before its request is complete.
 * @typedef {(url: URL, sessionId: string) => Promise<void>} Vanishing
 */

const bodyBytes = 2_000;

/** Every way to vanish. @type {Readonly<Record<string, Vanishing>>} */
export const vanishings = {
  "in the headers": (url) => vanish(url, "POST /api/sessions HTTP/1.1\r\nhost: local", "sent"),
  "in the body": (url, id) => {
    const [head, body] = turnOf(url, id);
    return vanish(url, head + body.slice(0, Math.floor(Math.random() * body.length)), "sent");
  },
  "before the answer": (url, id) => vanish(url, turnOf(url, id).join(""), "sent"),
  "in the answer": (url, id) => vanish(url, get(url, `/api/sessions/${id}/entries?limit=1000`), "answered"),
  "in an export": (url, id) => vanish(url, get(url, `/api/sessions/${id}/export?format=html`), "answered"),
  "in a stream": (url, id) => vanish(url, get(url, `/api/sessions/${id}/watch?after=-1`), "answered"),
  "as soon as a run has begun": (url, id) =>
    vanish(url, post(url, `/api/sessions/${id}/runs`, '{"input":"Hello","ifBusy":"enqueue"}').join(""), "answered"),
};

/**
 * Sends a text and disconnects: immediately, or after the start of the answer.
 * @param {URL} url
 * @param {string} text
 * @param {"sent" | "answered"} when
 */
async function vanish({ hostname, port }, text, when) {
  const socket = connect(Number(port), hostname);
  // After disconnecting, errors of the other side are ignored.
  socket.on("error", () => {});
  const closed = once(socket, "close");
  const leave = () => void (Math.random() < 0.5 ? socket.destroy() : socket.resetAndDestroy());
  if (when === "answered") socket.once("data", leave);
  socket.write(text, () => {
    if (when === "sent") leave();
  });
  await closed;
}

/**
 * @param {URL} url
 * @param {string} path
 */
function get({ host }, path) {
  return `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
}

/**
 * @param {URL} url
 * @param {string} path
 * @param {string} body
 * @returns {[head: string, body: string]}
 */
function post({ host }, path, body) {
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json`;
  return [`${head}\r\ncontent-length: ${body.length}\r\n\r\n`, body];
}

/**
 * @param {URL} url
 * @param {string} id
 */
function turnOf(url, id) {
  const content = "gone ".repeat(bodyBytes / 5);
  return post(url, `/api/sessions/${id}/turns`, JSON.stringify({ role: "user", content }));
}
