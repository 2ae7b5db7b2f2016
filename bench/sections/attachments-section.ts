import { randomBytes, randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createHeader, type SessionStore, SessionTree } from "skein";
import { createClient } from "skein/client";
import { foreignFormat, importFiles } from "skein/formats";
import { pictureOf, writeRollout } from "../attachments/pictures.ts";
import { directoryBytes } from "../directory-bytes.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { openFootprint } from "../fleet/footprint.ts";
import { type AppInput, startApp } from "../http/app-process.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { serverOf } from "../servers/server-kind.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import { openStoreOf } from "../store-kind.ts";

const section = "attachments";
const FORKS = 100;
const LOG_MB_MAX = 15;
const OPEN_MS_MAX = 20;
const APPEND_MAX = 1.3;
const PICTURE_BYTES = 1_000_000;
const MIB = 1024 * 1024;
const SERVER_MIB_MAX = 32;

/** Images and files beside the log: a large import, opening it, forks, appends, and transfers through a server. */
export const attachmentsSection: Section = {
  name: section,
  async run(bench) {
    return [...(await importRollout(bench)), ...(await appendPicture(bench)), ...(await transfers(bench))];
  },
};

async function importRollout(bench: Bench): Promise<Row[]> {
  const { pictures, rolloutBytes, opens, warmups } = bench.sizes;
  bench.progress(`attachments: a rollout of ${formatBytes(rolloutBytes)} with ${formatCount(pictures)} pictures`);
  const path = join(await bench.fixtures.folder("rollout"), "rollout-2026-01-01T00-00-00-1.jsonl");
  const rollout = await writeRollout(path, pictures, rolloutBytes);
  const folder = await bench.fixtures.folder("attachments");
  const { sessionId, timeMs } = await importTo(folder, path);
  await rm(path);
  const logBytes = (await directoryBytes(folder)) - (await directoryBytes(join(folder, "blobs")));
  const opened: Contender = {
    async run() {
      await using store = await openStoreOf("jsonl", folder);
      await (await SessionTree.on(store, sessionId)).buildContext();
    },
  };
  const { opened: samples } = await race({ opened }, { rounds: opens, warmups });
  const openMs = medianMs(samples);
  const forkedBytes = await forkAll(folder, sessionId);
  const what = `jsonl, a Codex session of ${formatBytes(rollout.bytes)} with ${formatCount(pictures)} pictures`;
  return [
    { section, what: `${what}, import`, measured: formatMs(timeMs) },
    {
      ...{ section, what: `${what}, its log`, measured: formatBytes(logBytes), against: formatBytes(rollout.bytes) },
      ...{ ratio: logBytes / rollout.bytes, target: atMost(logBytes / 1_000_000, LOG_MB_MAX, " MB") },
    },
    {
      ...{ section, what: `${what}, open + context of a turn`, measured: formatMs(openMs) },
      target: atMost(openMs, OPEN_MS_MAX, " ms"),
    },
    {
      section,
      what: `${what}, all of its blobs after ${FORKS} forks, with one more message each`,
      measured: formatBytes(forkedBytes),
      against: `${formatBytes(rollout.pictureBytes)} of pictures, each once`,
      ratio: forkedBytes / rollout.pictureBytes,
      target: atMost(forkedBytes / rollout.pictureBytes, 1),
    },
  ];
}

async function importTo(
  folder: string,
  path: string,
): Promise<{ readonly sessionId: string; readonly timeMs: number }> {
  await using store = await openStoreOf("jsonl", folder);
  const startedAt = performance.now();
  for await (const _ of importFiles({ store, userId: "user" }, { format: foreignFormat("codex"), path }));
  const timeMs = performance.now() - startedAt;
  const [head] = (await store.list()).items;
  if (head === undefined) throw new Error("The rollout was not imported.");
  return { sessionId: head.header.id, timeMs };
}

/** Forks a session many times, appends its first picture to each fork again, and returns what the blobs take on disk. */
async function forkAll(folder: string, sessionId: string): Promise<number> {
  await using store = await openStoreOf("jsonl", folder);
  const data = await firstPicture(store, sessionId);
  for (let number = 0; number < FORKS; number++) {
    const { header } = await store.fork(sessionId, createHeader({ id: `fork-${number}`, userId: "user" }));
    await store.append(header.id, [userMessage(data)]);
  }
  return directoryBytes(join(folder, "blobs"));
}

async function firstPicture(store: SessionStore, sessionId: string): Promise<Uint8Array> {
  for await (const entry of store.read(sessionId)) {
    const content = entry.type === "message" ? entry.message.content : null;
    const part = Array.isArray(content) ? content.find(({ type }) => type === "image") : undefined;
    const blob = part?.type === "image" ? await store.blob(sessionId, part) : null;
    if (blob !== null) return blob.bytes();
  }
  throw new Error("The session has no picture.");
}

function userMessage(bytes: Uint8Array) {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  const part = { type: "image", mediaType: "image/png", data } as const;
  return { type: "message", message: { role: "user", content: [part] } } as const;
}

/** An append of a message with a picture, compared with writing its bytes to a new file in the same durability. */
async function appendPicture(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const durability of ["flush", "fsync"] as const) {
    bench.progress(`attachments: append a picture, ${durability}`);
    const [folder, bareFolder] = [await bench.fixtures.folder("append"), await bench.fixtures.folder("bare")];
    await using store = await openStoreOf("jsonl", folder, durability);
    await store.create(createHeader({ id: "session", userId: "user" }));
    let next = userMessage(pictureOf(PICTURE_BYTES));
    let bytes = pictureOf(1);
    let number = 0;
    const skein: Contender = {
      prepare: async () => {
        next = userMessage(pictureOf(PICTURE_BYTES));
      },
      run: async () => {
        await store.append("session", [next]);
      },
    };
    const bare: Contender = {
      prepare: async () => {
        bytes = pictureOf(PICTURE_BYTES);
      },
      run: async () => {
        const fd = openSync(join(bareFolder, String(number++)), "wx");
        writeSync(fd, bytes);
        if (durability === "fsync") fsyncSync(fd);
        closeSync(fd);
      },
    };
    const samples = await race({ bare, skein }, bench.sizes);
    const ratio = timeRatio(samples.skein, samples.bare);
    rows.push({
      section,
      what: `jsonl (${durability}), append of a message with a picture of ${formatBytes(PICTURE_BYTES)}`,
      measured: formatMs(medianMs(samples.skein)),
      against: `${formatMs(medianMs(samples.bare))} to write its bytes to a file`,
      ratio,
      target: atMost(ratio, APPEND_MAX),
    });
  }
  return rows;
}

/** The most memory that a server takes while a file is uploaded and downloaded, on each kind of store with a server of its own. */
async function transfers(bench: Bench): Promise<Row[]> {
  const rows = await transfer(bench, "sqlite", {});
  for (const kind of ["postgres", "redis"] as const) {
    const place = serverOf(kind);
    if ("problem" in place) {
      rows.push({ section, what: `server on ${kind}, transfers`, measured: `not measured: ${place.problem}` });
      continue;
    }
    await using footprint = await openFootprint(place.url);
    const prefix = `skein_bench_${randomUUID().slice(0, 8)}`;
    try {
      rows.push(...(await transfer(bench, kind, { server: { url: place.url, prefix } })));
    } finally {
      await footprint.remove(prefix);
    }
  }
  return rows;
}

async function transfer(bench: Bench, kind: string, place: Pick<AppInput, "server">): Promise<Row[]> {
  const { transferBytes } = bench.sizes;
  bench.progress(`attachments: up- and download of ${formatBytes(transferBytes)} on ${kind}`);
  const folder = await bench.fixtures.folder(`transfer-${kind}`);
  await using app = await startApp({ kind: "server", folder, sessionId: "", ...place });
  const client = createClient({ url: app.url });
  const { header } = await client.sessions.create({});
  const warm = await client.sessions.uploadBlob(header.id, randomBytes(5_000_000));
  await client.sessions.blob(header.id, warm);
  const bytes = randomBytes(transferBytes);
  const before = await app.resetPeak();
  const ref = await client.sessions.uploadBlob(header.id, bytes);
  const uploaded = await app.resetPeak();
  const read = await client.sessions.blob(header.id, ref);
  const downloaded = await app.resetPeak();
  if (!Buffer.from(read).equals(bytes)) throw new Error("The downloaded bytes are others.");
  return (["upload", "download"] as const).map((direction) => {
    const { peakBytes } = direction === "upload" ? uploaded : downloaded;
    const { residentBytes } = direction === "upload" ? before : uploaded;
    const more = peakBytes - residentBytes;
    return {
      section,
      what: `server on ${kind}, ${direction} of ${formatBytes(transferBytes)}: the most resident memory meanwhile`,
      measured: `${formatBytes(peakBytes)}, ${formatBytes(more)} more`,
      against: `${formatBytes(residentBytes)} before`,
      ratio: peakBytes / residentBytes,
      target: atMost(more / MIB, SERVER_MIB_MAX, " MiB more"),
    };
  });
}
