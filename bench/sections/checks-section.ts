import { fileURLToPath } from "node:url";
import { createClient } from "skein/client";
import { localBackend } from "skein/sandbox";
import { formatCount, formatMs } from "../format.ts";
import { startApp } from "../http/app-process.ts";
import { requestSender } from "../http/send-requests.ts";
import { BENCH_TOKEN } from "../http/serve-revision.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { medianMs, timeRatio } from "../statistics.ts";

const section = "checks";
/** The maximum ratio of a request's time to that of the earlier build. */
const SLOWER_MAX = 1.1;
const CONNECTIONS = 10;
const TURN_CHARACTERS = 1000;
const PAGE_ENTRIES = 100;
const RUNS = 10;
const COMMANDS = 5;
// This file is compiled to .cache/bench/bench/sections/checks-section.js.
const OWN_BUILD = fileURLToPath(new URL("../../../../dist", import.meta.url));

/**
 * The cost of isolation, limits and checks: commands with and without isolation, and requests compared with an earlier
 * build.
 */
export const checksSection: Section = {
  name: section,
  async run(bench) {
    const earlier = process.env["SKEIN_BENCH_AGAINST"];
    return [await isolationRow(bench), ...(earlier === undefined ? [] : await requestRows(bench, earlier))];
  },
};

/** A command that does nothing, with and without isolation. */
async function isolationRow({ sizes, fixtures, progress }: Bench): Promise<Row> {
  progress("checks: isolated commands");
  const workingDir = await fixtures.folder("isolation");
  const what = "local sandbox, a command that does nothing, isolated";
  const commands = (isolation: "bubblewrap" | "none"): Contender => ({
    async run() {
      const sandbox = await localBackend.open({ workingDir, isolation });
      for (let count = 0; count < COMMANDS; count++) await sandbox.exec("true");
      await sandbox.close();
    },
  });
  try {
    const samples = await race({ isolated: commands("bubblewrap"), free: commands("none") }, sizes);
    return {
      section,
      what,
      measured: formatMs(medianMs(samples.isolated) / COMMANDS),
      against: `${formatMs(medianMs(samples.free) / COMMANDS)} without isolation`,
      ratio: timeRatio(samples.isolated, samples.free),
    };
  } catch (error) {
    if ((error as { kind?: unknown }).kind !== "unsupported") throw error;
    return { section, what, measured: "not measured: bubblewrap does not work here" };
  }
}

/** Requests of several kinds to this build, compared with an earlier one. */
async function requestRows(bench: Bench, earlier: string): Promise<Row[]> {
  const { sizes, fixtures, progress } = bench;
  progress("checks: requests against an earlier build");
  await using own = await startRevision(OWN_BUILD, await fixtures.folder("checks-own"));
  await using before = await startRevision(earlier, await fixtures.folder("checks-before"));
  const turns = await race({ own: own.turns(sizes.requests), before: before.turns(sizes.requests) }, sizes);
  const pages = Math.ceil(sizes.requests / 4);
  const page = await race({ own: own.pages(pages), before: before.pages(pages) }, sizes);
  const runs = await race({ own: own.runs(), before: before.runs() }, sizes);
  return [
    requestRow(`POST a turn of ${formatCount(TURN_CHARACTERS)} characters`, sizes.requests, turns),
    requestRow(`GET a page of ${PAGE_ENTRIES} entries`, pages, page),
    requestRow("POST a run, from the request to its end", RUNS, runs),
  ];
}

function requestRow(what: string, count: number, { own, before }: Record<"own" | "before", Sample[]>): Row {
  const ratio = timeRatio(own, before);
  return {
    section,
    what: `server and sqlite, ${what}`,
    measured: formatMs(medianMs(own) / count),
    against: `${formatMs(medianMs(before) / count)} of the earlier build`,
    ratio,
    target: atMost(Math.round(ratio * 100) / 100, SLOWER_MAX),
  };
}

/** A server of a build, with the requests to it. */
interface RevisionServer extends AsyncDisposable {
  turns(count: number): Contender;
  pages(count: number): Contender;
  runs(): Contender;
}

async function startRevision(build: string, folder: string): Promise<RevisionServer> {
  const app = await startApp({ kind: "revision", folder, sessionId: "", build });
  const client = createClient({ url: app.url, token: BENCH_TOKEN });
  const [talked, read] = [await client.sessions.create({}), await client.sessions.create({})];
  const content = "x".repeat(TURN_CHARACTERS);
  for (let turn = 0; turn < PAGE_ENTRIES; turn++)
    await client.sessions.addTurn(read.header.id, { role: "user", content });
  const authorization = `Bearer ${BENCH_TOKEN}`;
  const connections = CONNECTIONS;
  return {
    turns: (count) =>
      requestSender({
        url: `${app.url}/api/sessions/${talked.header.id}/turns`,
        request: {
          method: "POST",
          headers: { authorization, "content-type": "application/json" },
          body: JSON.stringify({ role: "user", content }),
        },
        count,
        connections,
        status: 201,
      }),
    pages: (count) =>
      requestSender({
        url: `${app.url}/api/sessions/${read.header.id}/entries?limit=${PAGE_ENTRIES}`,
        request: { headers: { authorization } },
        count,
        connections,
      }),
    runs: () => ({
      async run() {
        const { header } = await client.sessions.create({});
        for (let count = 0; count < RUNS; count++) {
          const { runId } = await client.runs.start(header.id, { input: "Hello." });
          for await (const _event of client.runs.events(header.id, runId));
        }
      },
    }),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}
