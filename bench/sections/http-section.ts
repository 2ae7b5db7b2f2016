import { SessionManager } from "skein";
import { createClient } from "skein/client";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { type AppProcess, PAGE_ENTRIES, startApp } from "../http/app-process.ts";
import { openStreams } from "../http/open-streams.ts";
import { CONNECTIONS, requestSender } from "../http/send-requests.ts";
import { messageText } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import type { AppMemory } from "../read-memory.ts";
import { atLeast, atMost, below, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import { openStoreOf } from "../store-kind.ts";

const section = "http";
const SESSION_MIN = 0.5;
/** The fewer parallel requests there are, the fewer share a read of the store. */
const CONNECTIONS_FEW = 10;
const PAGE_MIN = 0.4;
const RUN_RATIO_MAX = 1.5;
const STREAM_KB_MAX = 64;
const TURNS = 10;
const WARM_STREAMS = 50;
/** A page takes many times as long as a short response, so a round has fewer of them. */
const PAGE_SHARE = 4;

/** Requests with a session, pages of a log and open event streams, over loopback and between processes. */
export const httpSection: Section = {
  name: section,
  async run(bench) {
    return [...(await sessionRows(bench)), await pageRow(bench), await runRow(bench), ...(await streamRows(bench))];
  },
};

/** An application with a session for each request, compared with the same one without sessions. */
async function sessionRows({ sizes, fixtures, progress }: Bench): Promise<Row[]> {
  progress("http: requests with a session");
  const folder = await fixtures.folder("cookies");
  const sessionIds = await storeSessions(folder, CONNECTIONS);
  const sessionId = sessionIds[0] as string;
  await using plain = await startApp({ kind: "plain", folder, sessionId });
  await using session = await startApp({ kind: "session", folder, sessionId });
  const count = sizes.requests;
  const sender = (url: string, connections: number): Contender =>
    requestSender({ url, count, connections, cookies: sessionIds.map((id) => `skein_session=${id}`) });
  const samples = await race(
    {
      plain: sender(plain.url, CONNECTIONS),
      found: sender(session.url, CONNECTIONS),
      read: sender(`${session.url}/state`, CONNECTIONS),
      plainFew: sender(plain.url, CONNECTIONS_FEW),
      foundFew: sender(session.url, CONNECTIONS_FEW),
    },
    sizes,
  );
  const label = "the same application without sessions";
  const bare = { label, samples: samples.plain, limit: SESSION_MIN };
  const what = "Hono and sqlite, a session found by its cookie";
  return [
    rateRow(`${what}, ${CONNECTIONS} connections`, count, samples.found, bare),
    rateRow(`${what}, and its state read anew by the handler`, count, samples.read, { ...bare, limit: null }),
    rateRow(`${what}, ${CONNECTIONS_FEW} connections`, count, samples.foundFew, {
      label,
      samples: samples.plainFew,
      limit: null,
    }),
  ];
}

/** A page of entries from the server, compared with a route that has the same page in memory. */
async function pageRow({ sizes, fixtures, progress }: Bench): Promise<Row> {
  progress("http: pages of entries");
  const { folder, sessionId } = await fixtures.copy("sqlite", sizes.entriesMedium);
  await using plain = await startApp({ kind: "page", folder, sessionId });
  await using server = await startApp({ kind: "server", folder, sessionId });
  const count = Math.ceil(sizes.requests / PAGE_SHARE);
  const url = `${server.url}/api/sessions/${sessionId}/entries?limit=${PAGE_ENTRIES}`;
  const samples = await race(
    { plain: requestSender({ url: plain.url, count }), page: requestSender({ url, count }) },
    sizes,
  );
  const bytes = (await (await fetch(url)).arrayBuffer()).byteLength;
  const what = `server and sqlite, a page of ${PAGE_ENTRIES} entries, ${formatBytes(bytes)}`;
  const bare = { label: "a Hono route with the page in memory", samples: samples.plain, limit: PAGE_MIN };
  return rateRow(what, count, samples.page, bare);
}

/** A run on a long session, compared with one on a shorter session with an equally long context. */
async function runRow({ sizes, fixtures, progress }: Bench): Promise<Row> {
  progress("http: runs");
  const [long, short] = [
    await fixtures.copy("sqlite", sizes.entriesLarge),
    await fixtures.copy("sqlite", sizes.entriesMedium),
  ];
  await using longServer = await startApp({ kind: "studio", ...long });
  await using shortServer = await startApp({ kind: "studio", ...short });
  const runner = (url: string, sessionId: string): Contender => {
    const client = createClient({ url });
    return {
      async run() {
        const { runId } = await client.runs.start(sessionId, { input: "Hello." });
        for await (const _event of client.runs.events(sessionId, runId));
      },
    };
  };
  const samples = await race(
    { long: runner(longServer.url, long.sessionId), short: runner(shortServer.url, short.sessionId) },
    { rounds: sizes.opens, warmups: sizes.warmups },
  );
  const ratio = timeRatio(samples.long, samples.short);
  return {
    section,
    what: `server and sqlite, a run on a session of ${formatCount(sizes.entriesLarge)} entries, from the request to its end`,
    measured: formatMs(medianMs(samples.long)),
    against: `${formatMs(medianMs(samples.short))} with ${formatCount(sizes.entriesMedium)} entries`,
    ratio,
    target: atMost(ratio, RUN_RATIO_MAX),
  };
}

/** Many open event streams: of one session, and of a session each. */
async function streamRows(bench: Bench): Promise<Row[]> {
  const { streams } = bench.sizes;
  const rows: Row[] = [];
  for (const sessions of [1, streams]) {
    const what = `${formatCount(streams)} open event streams of ${sessions === 1 ? "one session" : "a session each"}`;
    bench.progress(`http: ${what}`);
    const folder = await bench.fixtures.folder("streams");
    const sessionIds = await storeSessions(folder, sessions);
    await using server = await startApp({ kind: "server", folder, sessionId: "" });
    const { seenMs, heldBytes, residentBytes } = await measureStreams(server, sessionIds, streams);
    rows.push(
      { section, what: `${what}, until each has seen what was appended to its session`, measured: formatMs(seenMs) },
      memoryRow(`${what}, memory held by JavaScript`, heldBytes),
      memoryRow(`${what}, resident memory of the process`, residentBytes),
    );
  }
  return rows;
}

/** The memory of one idle stream, and the time until all streams have received an append. */
async function measureStreams(
  server: AppProcess,
  sessionIds: readonly string[],
  streams: number,
): Promise<AppMemory & { readonly seenMs: number }> {
  const urls = Array.from(
    { length: streams },
    (_, index) => `${server.url}/api/sessions/${sessionIds[index % sessionIds.length]}/watch`,
  );
  // One-time costs of the first streams, such as compiled code, must not count.
  (await openStreams(urls.slice(0, WARM_STREAMS)))[Symbol.dispose]();
  const before = await server.memory();
  using open = await openStreams(urls);
  const after = await server.memory();
  const client = createClient({ url: server.url });
  const content = "This is for all who watch.";
  const startedAt = performance.now();
  const seen = open.saw(content);
  for (const id of sessionIds) await client.sessions.addTurn(id, { role: "user", content });
  await seen;
  return {
    seenMs: performance.now() - startedAt,
    heldBytes: (after.heldBytes - before.heldBytes) / streams,
    residentBytes: (after.residentBytes - before.residentBytes) / streams,
  };
}

/** Makes sessions of visitors, which are accessible by their id, and resolves to their ids. */
async function storeSessions(folder: string, count: number): Promise<string[]> {
  await using store = await openStoreOf("sqlite", folder);
  const manager = new SessionManager({ store });
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const { sessionId } = await manager.create({ userId: `anonymous:${index}` });
    for (let turn = 0; turn < TURNS; turn++) {
      await manager.addTurn(sessionId, { role: "user", content: messageText(turn) });
    }
    ids.push(sessionId);
  }
  return ids;
}

function rateRow(what: string, count: number, samples: readonly Sample[], bare: Bare): Row {
  const rate = timeRatio(bare.samples, samples);
  return {
    section,
    what,
    measured: perSecond(samples, count),
    against: `${perSecond(bare.samples, count)}, ${bare.label}`,
    ratio: rate,
    ...(bare.limit === null ? {} : { target: atLeast(rate, bare.limit) }),
  };
}

/** The baseline of a rate, and the required share of it, if any. */
interface Bare {
  readonly label: string;
  readonly samples: readonly Sample[];
  readonly limit: number | null;
}

function perSecond(samples: readonly Sample[], count: number): string {
  return `${formatCount(Math.round((count / medianMs(samples)) * 1000))} requests/s`;
}

function memoryRow(what: string, bytes: number): Row {
  const target = below(bytes / 1000, STREAM_KB_MAX, "kB each");
  return { section, what, measured: `${formatBytes(bytes)} each`, target };
}
