import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { HealthProber } from "../hostile/health-prober.ts";

const MIB = 1024 * 1024;
const USERS = 20;
/** Their content exceeds the heap if it is read and written at the same time. */
const LARGE_SESSIONS = 30;
const PROGRAM = join(import.meta.dirname, "programs/serve-limited.mjs");

let directory: string;
let child: ChildProcess;
let url: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-limits-"));
  const path = join(directory, "skein.db");
  await fillWithVariables(path);
  child = spawn(process.execPath, ["--max-old-space-size=512", PROGRAM, path, String(USERS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  url = String(line).trim();
});
afterAll(async () => {
  if (child.exitCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await rm(directory, { recursive: true, force: true });
});

/** Sessions with variables of 5 MiB, as they could be created before the limit existed. */
async function fillWithVariables(path: string): Promise<void> {
  await using store = await openSqliteStore({ path });
  const set = { large: "x".repeat(5 * MIB) };
  for (let i = 0; i < LARGE_SESSIONS; i++) {
    const entries = [{ type: "variables", set, unset: [] } as const];
    await store.create(createHeader({ id: `large-${i}`, userId: "user1" }), { entries });
  }
}

/** Sends a request on a new connection; a connection that the server closes after a refused body has the status 0. */
function send(user: number, method: string, path: string, body?: string, type = "application/json"): Promise<Answer> {
  const headers = { authorization: `Bearer token-of-user${user}-0123456789`, "content-type": type };
  return new Promise((resolve) => {
    const sent = request(`${url}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => resolve({ status: 0, text: "" }));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    });
    sent.on("error", () => resolve({ status: 0, text: "" }));
    sent.end(body);
  });
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Runs a task while the health route is polled; returns the longest latency. */
async function whileHealthy(work: () => Promise<void>): Promise<number> {
  const prober = new HealthProber(url, child.pid as number);
  try {
    await work();
    const { longestMs, failures } = await prober.take();
    expect(failures).toEqual([]);
    return longestMs;
  } finally {
    prober.stop();
  }
}

async function sessionOf(user: number): Promise<string> {
  return (JSON.parse((await send(user, "POST", "/api/sessions", "{}")).text) as { header: { id: string } }).header.id;
}

const fill = (unit: string, bytes: number): string => unit.repeat(Math.floor(bytes / unit.length));

/** Bodies that crashed the server, or could: each is refused, in any number. */
const HOSTILE: readonly (readonly [name: string, path: (id: string) => string, body: () => string])[] = [
  ["numbers as parts", (id) => `/api/sessions/${id}/runs`, () => `{"input":[${fill("1,", 15 * MIB)}1]}`],
  [
    "empty objects",
    (id) => `/api/sessions/${id}/turns`,
    () => `{"role":"user","content":[${fill("{},", 15 * MIB)}{}]}`,
  ],
  ["unknown keys", (id) => `/api/sessions/${id}/turns`, () => `{${fill('"a":1,', 15 * MIB)}"b":1}`],
  ["turn ids", (id) => `/api/sessions/${id}/merges`, () => `{"branchId":"b","turnIds":[${fill("1,", MIB - 99)}1]}`],
  ["names to unset", (id) => `/api/sessions/${id}`, () => `{"variables":{"unset":[${fill("1,", MIB - 99)}1]}}`],
  ["a nest of lists", (id) => `/api/sessions/${id}/entries`, () => fill("[", 16 * MIB)],
  ["a nest of objects", (id) => `/api/sessions/${id}/entries`, () => fill('{"a":', 16 * MIB)],
];

test("concurrent hostile bodies of several users are refused, and the server survives on 512 MB of heap", async () => {
  const id = await sessionOf(2);
  const longestMs = await whileHealthy(async () => {
    for (const [name, path, body] of HOSTILE) {
      const text = body();
      const method = name === "names to unset" ? "PATCH" : "POST";
      const answers = await Promise.all(Array.from({ length: 2 }, () => send(2, method, path(id), text)));
      for (const { status, text: said } of answers) {
        expect([0, 400, 409, 429], `${name}: ${said.slice(0, 200)}`).toContain(status);
        expect(said.length).toBeLessThan(5000);
      }
    }
    const lines = `{"type":"session"${fill(',"a":[{},{},{}]', 15 * MIB)}}\n`;
    expect((await send(2, "POST", "/api/import", lines, "application/jsonl")).status % 400).toBe(0);
  });
  expect(child.exitCode).toBeNull();
  expect(longestMs).toBeLessThan(1000);
});

test("twenty users with 14 MiB each are served or told to retry, and others are answered within a second", async () => {
  const ids = await Promise.all(Array.from({ length: USERS }, (_, user) => sessionOf(user)));
  const data = "A".repeat(7 * MIB);
  const picture = {
    type: "message",
    message: { role: "user", content: [{ type: "image", mediaType: "image/png", data }] },
  };
  const body = JSON.stringify({ entries: [picture, picture] });
  const longestMs = await whileHealthy(async () => {
    // All concurrently, and then some of them again, for whom there must be room.
    for (const users of [ids, ids.slice(0, 3)]) {
      const answers = await Promise.all(
        users.map((id, user) => send(user, "POST", `/api/sessions/${id}/entries`, body)),
      );
      const statuses = answers.map(({ status }) => status);
      for (const status of statuses) expect([0, 201, 503]).toContain(status);
      expect(statuses).toContain(201);
    }
  });
  expect(child.exitCode).toBeNull();
  expect(longestMs).toBeLessThan(1000);
});

test(`a listing of ${LARGE_SESSIONS} sessions with 5 MiB of variables each comes page by page`, async () => {
  const seen = new Set<string>();
  let [cursor, pages] = ["", 0];
  do {
    const { status, text } = await send(
      0,
      "GET",
      `/api/sessions?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`,
    );
    expect(status, text.slice(0, 200)).toBe(200);
    expect(text.length).toBeLessThan(MIB);
    const page = JSON.parse(text) as { items: { header: { id: string } }[]; next: string | null };
    for (const { header } of page.items) seen.add(header.id);
    cursor = page.next ?? "";
    pages++;
  } while (cursor !== "");
  expect([...seen].filter((id) => id.startsWith("large-"))).toHaveLength(LARGE_SESSIONS);
  expect(pages).toBeGreaterThan(10);
  expect(child.exitCode).toBeNull();
});

test("12 turns of 7 MiB are read in pages, and refused by routes without pages", async () => {
  const id = await sessionOf(3);
  const turn = JSON.stringify({ role: "user", content: "x".repeat(7 * MIB) });
  for (let i = 0; i < 12; i++) expect((await send(3, "POST", `/api/sessions/${id}/turns`, turn)).status).toBe(201);
  for (const path of ["state", "context", "analytics", "compaction"]) {
    const { status, text } = await send(3, "GET", `/api/sessions/${id}/${path}`);
    expect(status, path).toBe(413);
    expect(text).toContain("page by page");
  }
  for (const path of ["entries?limit=1000", "path?limit=1000"]) {
    const { status, text } = await send(3, "GET", `/api/sessions/${id}/${path}`);
    expect(status, path).toBe(200);
    const page = JSON.parse(text) as { items: unknown[]; next: string | null };
    expect(page.items.length).toBeLessThan(10);
    expect(page.next).not.toBeNull();
  }
  expect(child.exitCode).toBeNull();
});
