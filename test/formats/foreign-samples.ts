import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ForeignFormat, ForeignReading } from "../../src/interop/formats/index.ts";
import { FOREIGN_FORMATS, importForeign, readForeign, writeForeign } from "../../src/interop/formats/index.ts";
import { buildContext } from "../../src/session/context/context.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { Message } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";

const GOLDEN = join(import.meta.dirname, "golden");

/** A file that a program has written, with our own texts in it. */
export interface GoldenFile {
  readonly name: string;
  readonly format: ForeignFormat;
  readonly text: string;
}

/** Every golden file; its name begins with that of its format. */
export function goldenFiles(): GoldenFile[] {
  const names = readdirSync(GOLDEN).filter((name) => /\.jsonl?$/.test(name));
  return names.map((name) => ({ name, format: formatOf(name), text: readFileSync(join(GOLDEN, name), "utf8") }));
}

/** The text of a golden file. */
export function goldenText(name: string): string {
  return readFileSync(join(GOLDEN, name), "utf8");
}

function formatOf(file: string): ForeignFormat {
  const format = FOREIGN_FORMATS.find(({ name }) => file.startsWith(name));
  if (format === undefined) throw new Error(`${file} is named after no format.`);
  return format;
}

/** Parses a text in a foreign format. */
export async function readText(format: ForeignFormat, text: string): Promise<ForeignReading> {
  const reading = await readForeign(format, [Buffer.from(text)]);
  if (reading === null) throw new Error("There is no session in it.");
  return reading;
}

/** Imports a text; returns the id of the session. */
export async function importText(store: SessionStore, format: ForeignFormat, text: string): Promise<string> {
  const { sessions } = await importForeign({ store, userId: "ana" }, format, [Buffer.from(text)]);
  return sessions[0]?.sessionId ?? "";
}

/** A session as the text of a program's file. */
export async function writtenText(format: ForeignFormat, store: SessionStore, sessionId: string): Promise<string> {
  const { pieces } = await writeForeign(format, store, sessionId);
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

/** All entries of a session. */
export async function entriesOf(store: SessionStore, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

/** The context of a session without usage, which counts only once. */
export async function toldIn(store: SessionStore, sessionId: string): Promise<Message[]> {
  return buildContext(await entriesOf(store, sessionId)).messages.map((message) => {
    if (message.role !== "assistant") return message;
    const { usage: _usage, cost: _cost, ...said } = message;
    return said;
  });
}

/** The lines of a text. */
export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
