import type { FileHandle } from "node:fs/promises";
import type { Entry } from "../../session/entry.ts";
import type { SessionHeader } from "../../session/header.ts";
import { damageAt, withLog } from "./log-access.ts";
import { formatLine, parseLine } from "./log-line.ts";
import type { LogState } from "./log-state.ts";
import { readChunk, readLines } from "./read-lines.ts";
import { writeAll } from "./write-lines.ts";

const COPY_BYTES = 1024 * 1024;

/** Writes a log that begins with another header and has the first entries of this one, as many as `version` says. */
export async function copyLog(state: LogState, version: number, header: SessionHeader, to: FileHandle): Promise<void> {
  await writeAll(to, Buffer.from(`${JSON.stringify(header)}\n`));
  if (version === 0) return;
  await withLog(state.identity, async (from) => {
    const { offset, entries } = await endOf(state, version, from);
    for (let at = state.identity.headerEnd; at < offset; ) {
      const chunk = await readChunk(from, at, Math.min(COPY_BYTES, offset - at));
      if (chunk.length === 0) throw new Error(`${state.identity.places.log} is shorter than it was`);
      await writeAll(to, chunk);
      at += chunk.length;
    }
    if (entries.length > 0) await writeAll(to, Buffer.from(formatLine(entries)));
  });
}

/**
 * Where the whole lines of the first entries end, and those of the entries that are only a part of the line after
 * it.
 */
async function endOf(
  state: LogState,
  version: number,
  from: FileHandle,
): Promise<{ offset: number; entries: readonly Entry[] }> {
  const { end, finder, identity } = state;
  if (version === end.seq) return { offset: end.offset, entries: [] };
  let { seq, offset } = await finder.anchorBefore(version - 1, end);
  for await (const lines of readLines(from, offset, end.offset)) {
    for (const line of lines) {
      const entries = parseLine(line, seq);
      if (typeof entries === "string") throw await damageAt(from, identity.places.log, line, entries);
      if (seq + entries.length > version) return { offset, entries: entries.slice(0, version - seq) };
      seq += entries.length;
      offset = line.offset + line.length;
      if (seq === version) return { offset, entries: [] };
    }
  }
  throw new Error(`${identity.places.log} is shorter than it was`);
}
