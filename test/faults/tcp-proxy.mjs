import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * A way to a server on 127.0.0.1 that can be cut.
 * @typedef {object} TcpProxy
 * @property {number} port
 * @property {(url: string) => string} through the same URL, over the proxy
 * @property {() => void} silence nothing passes any more, and nobody is told
 * @property {() => Promise<void>} refuse connections end, and no new ones are taken
 * @property {() => void} reset connections end as if the peer had died; new ones are taken
 * @property {() => Promise<void>} heal all passes again; what was held back in silence is lost with its connections
 * @property {() => Promise<void>} close
 */

/**
 * @param {number} target the port of the server
 * @returns {Promise<TcpProxy>}
 */
export async function startProxy(target) {
  /** @type {Set<import("node:net").Socket>} */
  const sockets = new Set();
  let silent = false;
  const keep = (/** @type {import("node:net").Socket} */ socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) keep(socket);
    const pass = (/** @type {import("node:net").Socket} */ from, /** @type {import("node:net").Socket} */ to) => {
      from.on("data", (data) => void (silent || to.destroyed || to.write(data)));
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
    heal: async () => {
      if (silent) reset();
      silent = false;
      if (server.listening) return;
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    close: refuse,
  };
}
