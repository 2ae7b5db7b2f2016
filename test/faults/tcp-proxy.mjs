import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * A TCP proxy to a server on 127.0.0.1 that can interrupt connections.
 * @typedef {object} TcpProxy
 * @property {number} port
 * @property {(url: string) => string} through the same URL, over the proxy
 * @property {() => void} silence drops all data silently; connections stay open
 * @property {() => Promise<void>} refuse connections end, and new ones are refused
 * @property {() => void} reset connections are reset; new ones are accepted
 * @property {(sent: RegExp) => Promise<HeldConnection>} holdAnswers the next connection over which such a text is sent
 * gets no more answers; resolves when the text has been passed on
 * @property {() => Promise<void>} heal forwards data again; connections with dropped data are closed
 * @property {() => Promise<void>} close
 */

/**
 * A connection whose responses are held back.
 * @typedef {{ reset: () => void }} HeldConnection
 */

/** How much of the earlier data is searched together with new data, because a text may arrive in two parts. */
const tailBytes = 256;

/**
 * @param {number} target the port of the server
 * @returns {Promise<TcpProxy>}
 */
export async function startProxy(target) {
  /** @type {Set<import("node:net").Socket>} */
  const sockets = new Set();
  let [silent, closed] = [false, false];
  /** The awaited text, and the waiter. @type {{ sent: RegExp, resolve: (held: HeldConnection) => void } | null} */
  let holding = null;
  const keep = (/** @type {import("node:net").Socket} */ socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) keep(socket);
    let [isHeld, tail] = [false, ""];
    const look = (/** @type {Buffer} */ data) => {
      if (holding === null) return;
      const text = tail + data.toString("latin1");
      tail = text.slice(-tailBytes);
      if (!holding.sent.test(text)) return;
      isHeld = true;
      holding.resolve({ reset: () => [client, upstream].forEach((socket) => void socket.resetAndDestroy()) });
      holding = null;
    };
    const pass = (/** @type {import("node:net").Socket} */ from, /** @type {import("node:net").Socket} */ to) => {
      from.on("data", (data) => {
        if (from === client) look(data);
        if (!silent && !to.destroyed && !(isHeld && to === client)) to.write(data);
      });
      from.on("close", () => void (silent || to.destroy()));
    };
    pass(client, upstream);
    pass(upstream, client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const refuse = async () => {
    reset();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  };
  return {
    port,
    through: (url) => {
      const changed = new URL(url);
      changed.port = String(port);
      return changed.href;
    },
    silence: () => {
      silent = true;
    },
    refuse,
    reset,
    holdAnswers: (sent) => new Promise((resolve) => (holding = { sent, resolve })),
    heal: async () => {
      if (silent) reset();
      silent = false;
      if (server.listening || closed) return;
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    close: () => {
      closed = true;
      return refuse();
    },
  };
}
