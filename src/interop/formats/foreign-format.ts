import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { WholeDraft } from "../../session/log/draft.ts";
import type { Entry, FactBody, NodeBody } from "../../session/log/entry.ts";
import type { Lineage, SessionHeader } from "../../session/log/header.ts";
import type { Message } from "../../session/message.ts";
import type { ReadReport, WriteReport } from "./foreign-report.ts";

/** The programs whose sessions can be read and written. */
export type FormatName = "claude-code" | "codex" | "opencode" | "openrath" | "pi";

/** One line of a foreign file, or the whole file if the format is a single JSON document. */
export interface ForeignLine {
  /** Counted from 1. */
  readonly number: number;
  /** The line as in the file, without its newline. */
  readonly text: string;
  /** An object or a list. */
  readonly value: JsonValue;
}

/** The header data of a foreign session. */
export interface ForeignHeader {
  /** Its id in the program that wrote it. */
  readonly foreignId: string;
  /** The foreign session that it was forked from, or that started it. */
  readonly parentForeignId?: string;
  /** The lineage as the program recorded it; parents are foreign ids. */
  readonly lineage?: Lineage;
  readonly createdAt: string | null;
  readonly cwd: string | null;
  /** The version of the format or of the program, as recorded in the file. */
  readonly version: string | null;
  /** Fields of the program's own header without a counterpart here; `write` reads them back with `noteOf`. */
  readonly rest?: JsonObject;
}

/** The bodies that a foreign session may add to a log: content only, no runs and no approvals. */
export type ForeignBody = NodeBody | Extract<FactBody, { type: "label" | "session_info" | "trailer" }>;

/** Computes the fields of the original lines that the entry does not hold. Translating the entry back needs the report. */
export type FindRest = (entry: Entry, report: WriteReport) => JsonValue | undefined;

/** An entry that a reader found. */
export interface ForeignEntry {
  /** Unique in the session and the same whenever the file is read; the foreign id if there is one. */
  readonly id: string;
  /** The foreign parent of a node (null: it is a root). If undefined, the parent is the current leaf. Facts have no parent. */
  readonly parentId?: string | null | undefined;
  /** ISO-8601 text or milliseconds. If missing or invalid, the time of the previous entry is used. */
  readonly time?: unknown;
  readonly body: ForeignBody;
  /** The fields of the lines that the body does not hold. They are stored with the entry; `foreignRest` reads them. */
  readonly rest?: FindRest | undefined;
  /** True to insert a node that names no parent between the previous entry and the children of that entry. */
  readonly between?: boolean;
}

/** One session while it is being read. `ForeignLog` in foreign-log.ts is the only implementation. */
export interface ForeignLogSink {
  /** The id of the session's current leaf. */
  readonly leafId: string | null;
  /** How often the leaf was moved to another branch. */
  readonly moves: number;
  /**
   * Adds one entry that was made of these lines (one line, or all lines of one answer).
   *
   * - The parent is a foreign id that was added, kept or aliased before. An unknown parent is treated as undefined.
   * - If the parent is not the leaf, a `leaf` fact that moves the leaf there is added first.
   * - An entry that a log cannot hold (too large, too deep, invalid) is kept verbatim instead, line by line.
   * - An id that was added before is a duplicate: it is only counted.
   */
  add(entry: ForeignEntry, lines: readonly ForeignLine[]): void;
  /** Keeps a line verbatim, in one or more `custom` entries after the leaf or after `parentId`. */
  keep(
    line: ForeignLine,
    about?: {
      readonly id?: string | undefined;
      readonly parentId?: string | null | undefined;
      readonly time?: unknown;
    },
  ): void;
  /** Moves the leaf to a known entry without adding a message; `id` is the id of the line that records the move. */
  move(id: string, foreignId: string | null, line: ForeignLine): void;
  /** Makes a foreign id an alias of a known one. */
  alias(foreignId: string, knownId: string | null): void;
  /** True if the foreign id was added, kept or aliased. */
  has(foreignId: string): boolean;
}

/** Receives the sessions that a reader finds in a file. */
export interface ForeignSink {
  readonly report: ReadReport;
  /** Begins a session; a file may hold several, the main one first. */
  begin(header: ForeignHeader): ForeignLogSink;
}

/**
 * Parses the lines of one file, in order. It never throws because of a file's content: an unknown value is kept, an invalid
 * one is counted with `report.lose`.
 */
export interface ForeignReader {
  line(line: ForeignLine): void;
  /** Called when the file has been idle: emits buffered entries that the program has finished. */
  flush?(): void;
  /** True if an entry continued after `flush` had emitted it. The file must then be read again from its beginning. */
  readonly reopened?: boolean;
  /** Called at the end of the file: emits all buffered entries, finished or not. */
  end(): void;
}

/** A session to be written in a foreign format. */
export interface ForeignSource {
  readonly header: SessionHeader;
  readonly leafId: string | null;
  /**
   * For a format that has edits, if they are to be kept: what models see at the leaf instead of entries on the path to it, which
   * `entries` then yields as they were said; null for nothing.
   */
  readonly edits: readonly { readonly targetId: string; readonly message: Message | null }[];
  /** The log without hidden entries, oldest first, parents before children. Each call reads the log again. */
  entries(): AsyncIterable<Entry>;
  /** The working directory for the program. */
  readonly cwd: string;
  /** The session's id in the program; the format's `isSessionId` accepts it. */
  readonly foreignId: string;
}

/** How to make the program continue a written session. */
export interface Handoff {
  /** The path where the program looks for the file. */
  readonly path: string;
  /** The commands to run in `cwd`, in order; the last one resumes the session. */
  readonly commands: readonly (readonly string[])[];
}

/** How the sessions of one program are read and written. */
export interface ForeignFormat {
  readonly name: FormatName;
  /** The program's display name. */
  readonly title: string;
  /** `lines` if each line is a JSON value, `document` if the whole text is one. */
  readonly unit: "lines" | "document";
  /** Whether a file that begins like this (up to 64 KiB) has this format. */
  detects(start: string): boolean;
  /** The directory where the program keeps its sessions. */
  home(): string;
  /** Whether a path below that directory is the path of a session file. */
  isSessionFile(path: string): boolean;
  /** The database in which the program keeps its sessions instead, which Skein does not read, and the command that exports one. */
  readonly database?: { path(): string; readonly exportCommand: string };
  /** Whether some version of the program has edits of the context, which its models then see. */
  readonly hasEdits?: true;
  /** Creates a reader for one file; `path` is null if the text does not come from a file. */
  read(sink: ForeignSink, path: string | null): ForeignReader;
  /** Yields the text of a session in pieces. Entries that the format cannot hold are counted in the report. */
  write(source: ForeignSource, report: WriteReport): AsyncIterable<string>;
  /** Whether the program makes session ids of this form. Only such ids become file names or command-line arguments. */
  isSessionId(id: string): boolean;
  /** A session id of that form, derived from the text: the same text gives the same id. */
  sessionIdFrom(text: string): string;
  /** How to hand a written session to the program. */
  handoff(source: Pick<ForeignSource, "header" | "cwd" | "foreignId">): Handoff;
}

/** A draft whose id, parent and timestamp the import has decided. */
export type ForeignDraft = WholeDraft;

/** The part of a format that finds the files. It is in a module of its own, as a format's readers are slow to load. */
export type ProgramFiles = Pick<ForeignFormat, "name" | "title" | "home" | "isSessionFile" | "database">;
