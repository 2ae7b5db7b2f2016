import { crc32 } from "node:zlib";
import { EMPTY_PATH, type SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import type { Anchor, EntryRun } from "./entry-run.ts";

/** How many bytes before a block's end its check covers. */
export const CHECK_BYTES = 1024;

/** How the log's file looked when a block was written. */
export interface FileStamp {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** The head without what the log's first line or the file system knows. */
export type BlockHead = Omit<SessionHead, "header" | "updatedAt">;

/** Where a block begins and ends in the log, and what the log adds up to there. */
export interface BlockCut {
  readonly end: Anchor;
  /** How many lines the log has up to there, the header's included. */
  readonly lines: number;
  readonly head: SessionHead;
  /** What the settings of the head lead to; left out where that is nothing. */
  readonly settings?: readonly SettingsNode[];
  /** A checksum of the last bytes before the end. */
  readonly check: number;
}

/** One line of an index: a piece of a log in short, and the fold of all that comes before its end. */
export interface IndexBlock extends Omit<BlockCut, "head"> {
  readonly from: Anchor;
  readonly head: BlockHead;
  /** A checksum of the log's first line. */
  readonly headerCheck: number;
  readonly stamp: FileStamp;
  readonly hashes: string;
  readonly anchors: string;
}

/** A block as it is written. */
interface RawBlock {
  readonly format: number;
  readonly from: readonly [number, number];
  readonly end: readonly [number, number];
  readonly lines: number;
  readonly check: number;
  readonly log: readonly [number, number, number, number];
  readonly head: BlockHead;
  readonly settings?: readonly SettingsNode[];
  readonly hashes: string;
  readonly anchors: string;
}

const FORMAT = 3;

/** A checksum of some bytes. */
export function checksum(bytes: Uint8Array | string): number {
  return crc32(bytes);
}

/** The line of a block: what an index file is made of. The line carries a checksum of itself. */
export function formatBlock(
  run: EntryRun,
  from: Anchor,
  cut: BlockCut,
  log: { readonly headerCheck: number; readonly stamp: FileStamp },
): string {
  const { header: _header, updatedAt: _updatedAt, ...head } = cut.head;
  const raw: RawBlock = {
    format: FORMAT,
    from: [from.seq, from.offset],
    end: [cut.end.seq, cut.end.offset],
    lines: cut.lines,
    check: cut.check,
    log: [log.headerCheck, log.stamp.ino, log.stamp.size, log.stamp.mtimeMs],
    head,
    ...(cut.settings === undefined ? {} : { settings: cut.settings }),
    hashes: encodeHashes(run.hashes.slice(from.seq - run.from.seq, cut.end.seq - run.from.seq)),
    anchors: encodeAnchors(
      from,
      run.anchors.filter(({ seq }) => seq > from.seq && seq < cut.end.seq),
    ),
  };
  const json = JSON.stringify(raw);
  return withChecksum(json);
}

/**
 * The line that says how the log looked when nobody wrote to it. It stands after the last block, until the next
 * one.
 */
export function formatRest({ ino, size, mtimeMs }: FileStamp): string {
  return withChecksum(JSON.stringify({ rest: [ino, size, mtimeMs] }));
}

/** What a line says of how the log looked, or null for a line that does not. */
export function parseRest(line: string): FileStamp | null {
  try {
    const { rest } = JSON.parse(checkedJson(line) ?? "null") as { rest?: [number, number, number] };
    return rest === undefined ? null : { ino: rest[0], size: rest[1], mtimeMs: rest[2] };
  } catch {
    return null;
  }
}

/** The block of a line, or null for a line that is none. */
export function parseBlock(line: string): IndexBlock | null {
  const json = checkedJson(line);
  if (json === null) return null;
  try {
    const { format, from, end, lines, check, log, head, settings, hashes, anchors } = JSON.parse(json) as RawBlock;
    if (format !== FORMAT) return null;
    const [headerCheck, ino, size, mtimeMs] = log;
    return {
      from: { seq: from[0], offset: from[1] },
      end: { seq: end[0], offset: end[1] },
      lines,
      check,
      headerCheck,
      stamp: { ino, size, mtimeMs },
      head,
      ...(settings === undefined ? {} : { settings }),
      hashes,
      anchors,
    };
  } catch {
    return null;
  }
}

/** The head of a session at a block's end. */
export function headOf(block: IndexBlock, header: SessionHeader, updatedAt: string): SessionHead {
  const path = block.head.path.depth === 0 ? EMPTY_PATH : block.head.path;
  return { ...block.head, path, header, updatedAt };
}

/** The hashes of a block's entries, in log order. */
export function decodeHashes({ hashes }: IndexBlock): Uint32Array {
  const bytes = Buffer.from(hashes, "base64");
  const decoded = new Uint32Array(Math.floor(bytes.length / 3));
  for (let i = 0; i < decoded.length; i++) decoded[i] = bytes.readUIntBE(i * 3, 3);
  return decoded;
}

/** The places in a block whose offsets are kept, ascending, its beginning included. */
export function decodeAnchors({ from, anchors }: IndexBlock): Anchor[] {
  const numbers = decodeVarints(Buffer.from(anchors, "base64"));
  const decoded = [from];
  let { seq, offset } = from;
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    seq += numbers[i] as number;
    offset += numbers[i + 1] as number;
    decoded.push({ seq, offset });
  }
  return decoded;
}

function withChecksum(json: string): string {
  return `${checksum(json).toString(16).padStart(8, "0")} ${json}\n`;
}

function checkedJson(line: string): string | null {
  const json = line.slice(9);
  return line[8] === " " && checksum(json) === Number.parseInt(line.slice(0, 8), 16) ? json : null;
}

function encodeHashes(hashes: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(hashes.length * 3);
  for (const [index, hash] of hashes.entries()) bytes.writeUIntBE(hash, index * 3, 3);
  return bytes.toString("base64");
}

function encodeAnchors(from: Anchor, anchors: readonly Anchor[]): string {
  const bytes: number[] = [];
  let before = from;
  for (const anchor of anchors) {
    pushVarint(bytes, anchor.seq - before.seq);
    pushVarint(bytes, anchor.offset - before.offset);
    before = anchor;
  }
  return Buffer.from(bytes).toString("base64");
}

function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
}

function decodeVarints(bytes: Buffer): number[] {
  const numbers: number[] = [];
  let value = 0;
  let scale = 1;
  for (const byte of bytes) {
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (byte >= 0x80) continue;
    numbers.push(value);
    value = 0;
    scale = 1;
  }
  return numbers;
}
