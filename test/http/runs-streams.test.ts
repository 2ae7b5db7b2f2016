import { ALL_RIGHTS } from "../../src/http/caller-init.ts";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { EventStreams, type FrameSource } from "../../src/http/server/runs/event-streams.ts";
import { SessionWatches } from "../../src/http/server/runs/session-watches.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { gate } from "./runs-agents.ts";
import { ANN, listen, openRunServer } from "./runs-server.ts";
import { tokenOf } from "./server-support.ts";

/** A reader that keeps access. */
const READER = { caller: { userId: "ann", admin: false, may: ALL_RIGHTS }, holds: () => true };

/** A server with one source, for any client. */
async function serveSource(makeSource: () => FrameSource | Promise<FrameSource>, heartbeatMs?: number) {
  const streams = new EventStreams({ streamsPerUser: 10_001, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) });
  const url = await listen({ fetch: async (request) => streams.open(await makeSource(), request, READER) });
  onTestFinished(() => streams.close());
  return { streams, url };
}

const silent: FrameSource = { take: () => "", attach: () => () => {} };

/** A connection that has requested a stream and reads only on demand. */
async function askRaw(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
  return socket;
}

test("a disconnected client is removed immediately, together with its source", async () => {
  let attached = 0;
  const source: FrameSource = {
    take: () => "",
    attach: () => {
      attached += 1;
      return () => {
        attached -= 1;
      };
    },
  };
  const { streams, url } = await serveSource(() => source);
  const [one, two] = [await askRaw(url), await askRaw(url)];
  await Promise.all([once(one, "data"), once(two, "data")]);
  expect([streams.size, attached]).toEqual([2, 2]);
  one.destroy();
  await expect.poll(() => [streams.size, attached]).toEqual([1, 1]);
  two.resetAndDestroy();
  await expect.poll(() => [streams.size, attached]).toEqual([0, 0]);
});

test("a client that wants only the headers gets them, and nothing is watched for it", async () => {
  const { url, store, sessionId } = await openRunServer();
  const watching = vi.spyOn(store, "watch");
  const head = await fetch(`${url}/api/sessions/${sessionId}/watch`, { method: "HEAD", headers: ANN });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  expect(watching).not.toHaveBeenCalled();
});

test("a client that has left before its stream begins holds nothing", async () => {
  const left = gate();
  let asked = 0;
  const { streams, url } = await serveSource(async () => {
    asked += 1;
    if (asked === 1) await left.opened;
    return silent;
  });
  const socket = await askRaw(url);
  await expect.poll(() => asked).toBe(1);
  socket.destroy();
  await once(socket, "close");
  left.open();
  const other = await fetch(url);
  expect(streams.size).toBe(1);
  await other.body?.cancel();
});

test("events that arrive while a source is read are not missed", async () => {
  let wake = (): void => {};
  const frames = ["", "data: there\n\n", null];
  const source: FrameSource = {
    take: async () => {
      wake();
      return frames.shift() ?? null;
    },
    attach: (given) => {
      wake = given;
      return () => {};
    },
  };
  const { url } = await serveSource(() => source);
  expect(await (await fetch(url)).text()).toBe("data: there\n\n");
});

test("for a client that does not read, no more events are read than its connection buffers", async () => {
  const piece = `data: ${"x".repeat(64 * 1024)}\n\n`;
  let taken = 0;
  const endless: FrameSource = {
    take: () => {
      taken += piece.length;
      return piece;
    },
    attach: () => () => {},
  };
  const { url } = await serveSource(() => endless);
  const socket = await askRaw(url);
  await once(socket, "readable");
  socket.pause();
  let before = -1;
  // The kernel buffers some megabytes for the connection; when its buffer is full, the source is no longer read.
  await vi.waitFor(
    () => {
      const same = taken === before;
      before = taken;
      expect(same).toBe(true);
    },
    { timeout: 60_000, interval: 200 },
  );
  const full = taken;
  expect(full).toBeLessThan(64 * 1024 * 1024);
  socket.resume();
  await expect.poll(() => taken).toBeGreaterThan(full);
});

test("a stream without data sends a heartbeat from time to time", async () => {
  const { url } = await serveSource(() => silent, 20);
  const socket = await askRaw(url);
  let text = "";
  socket.on("data", (data) => {
    text += data.toString();
  });
  await expect.poll(() => text.match(/^:$/gm)?.length).toBeGreaterThanOrEqual(3);
});

test("a source that fails ends its stream, and no other", async () => {
  const failing: FrameSource = { take: () => Promise.reject(new Error("The disk is gone.")), attach: () => () => {} };
  const sources = [failing, silent];
  const { streams, url } = await serveSource(() => sources.shift() ?? silent);
  expect(await (await fetch(url)).text()).toBe("");
  const other = await fetch(url);
  expect(streams.size).toBe(1);
  await other.body?.cancel();
});

test("a thousand clients watch one session over one watch of the store, and each gets every entry once", async () => {
  const store = openMemoryStore();
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  const head = (await store.head(sessionId)) as SessionHead;
  const watching = vi.spyOn(store, "watch");
  const watches = new SessionWatches(store, (error) => expect(error).toBe(undefined));
  const { streams } = await serveSource(() => silent);
  const readers = await Promise.all(
    Array.from({ length: 1000 }, async () => {
      const { body } = streams.open(watches.join(head, null), new Request("http://127.0.0.1"), READER);
      return body?.getReader();
    }),
  );
  expect([streams.size, watches.size]).toEqual([1000, 1]);
  expect(watching).toHaveBeenCalledTimes(1);
  for (const text of ["one", "two", "three"]) await manager.addTurn(sessionId, { role: "user", content: text });
  const texts = await Promise.all(
    readers.map(async (reader) => {
      let text = "";
      while (!text.includes("three")) text += new TextDecoder().decode((await reader?.read())?.value);
      await reader?.cancel();
      return text;
    }),
  );
  expect(
    new Set(
      texts.map((text) =>
        text
          .replace(/^id: -?\d+\n\n/, "")
          .match(/"content":"\w+"/g)
          ?.join(),
      ),
    ),
  ).toEqual(new Set(['"content":"one","content":"two","content":"three"']));
  expect([streams.size, watches.size]).toEqual([0, 0]);
});

test("a watch starts at the given position, continues with new entries, and reads missed ones from the log", async () => {
  const { client, manager, sessionId } = await openRunServer();
  for (let turn = 0; turn < 200; turn++) await manager.addTurn(sessionId, { role: "user", content: `${turn}` });
  const seen: number[] = [];
  for await (const { seq } of client.sessions.watch(sessionId, { after: 9 })) {
    seen.push(seq);
    if (seq === 150)
      for (let turn = 200; turn < 300; turn++) await manager.addTurn(sessionId, { role: "user", content: "more" });
    if (seq === 299) break;
  }
  expect(seen).toEqual(Array.from({ length: 290 }, (_, index) => index + 10));
});

test("a watch whose first connection is lost before its first event misses no event", async () => {
  const { url, manager, sessionId } = await openRunServer();
  await manager.addTurn(sessionId, { role: "user", content: "before" });
  let connections = 0;
  const client = createClient({
    url,
    token: tokenOf("ann"),
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (++connections > 1) return response;
      const reader = response.body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      await reader?.cancel();
      // While no one watches.
      await manager.addTurn(sessionId, { role: "user", content: "meanwhile" });
      return new Response(value, response);
    },
  });
  const [entry] = await take(client.sessions.watch(sessionId), 1);
  expect(entry).toMatchObject({ type: "message", message: { content: "meanwhile" } });
  expect(connections).toBe(2);
});

test("a watch is refused for others, for a position that the log has not reached, and for nonsense", async () => {
  const { client, as, url, sessionId } = await openRunServer();
  await expect(take(as("bob").sessions.watch(sessionId), 1)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(take(client.sessions.watch(sessionId, { after: 5 }), 1)).rejects.toMatchObject({
    code: "EVENT_ID_UNKNOWN",
    status: 400,
  });
  for (const [query, lastEventId] of [["?after=x"], ["?after=-2"], ["", "x"], ["", "1.5"]]) {
    const headers = {
      ...ANN,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    };
    expect((await fetch(`${url}/api/sessions/${sessionId}/watch${query}`, { headers })).status).toBe(400);
  }
});

test("a watch of a deleted session ends permanently", async () => {
  const { client, manager, store, sessionId } = await openRunServer();
  const watching = take(client.sessions.watch(sessionId), 10);
  await manager.addTurn(sessionId, { role: "user", content: "last" });
  expect(await store.delete(sessionId)).toBe(true);
  await expect(watching).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", status: 404 });
});

async function take(entries: AsyncIterable<Entry>, count: number): Promise<Entry[]> {
  const taken: Entry[] = [];
  for await (const entry of entries) if (taken.push(entry) === count) break;
  return taken;
}
