import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { WholeDraft } from "../../session/log/draft.ts";
import type { Entry, FactBody, NodeBody } from "../../session/log/entry.ts";
import type { Lineage, SessionHeader } from "../../session/log/header.ts";
import type { ReadReport, WriteReport } from "./foreign-report.ts";

/** The programs whose sessions can be read and written. */
export type FormatName = "claude-code" | "codex" | "opencode" | "openrath" | "pi";

/** One line of a foreign file, or all of it where the format is one document. */
export interface ForeignLine {
  /** Counted from 1. */
  readonly number: number;
  /** As it stands in the file, without its end. */
  readonly text: string;
  /** An object or a list. */
  readonly value: JsonValue;
}

/** What a foreign session says of itself. */
export interface ForeignHeader {
  /** Its id in the program that wrote it. */
  readonly foreignId: string;
  /** The foreign session that it was forked from, or that started it. */
  readonly parentForeignId?: string;
  /** Where the program says that it came from, its parents by their foreign ids. */
  readonly lineage?: Lineage;
  readonly createdAt: string | null;
  readonly cwd: string | null;
  /** The version of the format or of the program, as the file says. */
  readonly version: string | null;
  /** What has no counterpart of the program's own header; `write` finds it with `noteOf`. */
  readonly rest?: JsonObject;
}

/** What a foreign session may add to a log: words, and nothing that runs or approves. */
export type ForeignBody = NodeBody | Extract<FactBody, { type: "label" | "session_info" | "trailer" }>;

/** Finds what an entry does not say of its lines. The report is for whoever translates the entry back for that. */
export type FindRest = (entry: Entry, report: WriteReport) => JsonValue | undefined;

/** An entry that a reader found. */
export interface ForeignEntry {
  /** Unique in the session and the same whenever the file is read; the foreign id where there is one. */
  readonly id: string;
  /** The foreign parent of a node (null: none); left out, the node goes where the session stands. Facts have none. */
  readonly parentId?: string | null | undefined;
  /** An ISO-8601 text or milliseconds; what is missing or no time becomes the time of the entry before. */
  readonly time?: unknown;
  readonly body: ForeignBody;
  /** What the body does not say of the lines; kept beside it, and found again by `foreignRest`. */
  readonly rest?: FindRest | undefined;
  /** Whether a node without a named parent lies between the entry before it and the children of that one. */
  readonly between?: boolean;
}

/** One session while it is read; `ForeignLog` in foreign-log.ts is the only one there is. */
export interface ForeignLogSink {
  /** Where the session stands: the id of the last node. */
  readonly leafId: string | null;
  /** How often the session has gone on elsewhere than where it stood. */
  readonly moves: number;
  /**
   * Adds an entry made of these lines (one, or those of one answer).
   *
   * - A parent is a foreign id that was added, kept or aliased before. One that is not known counts as left out.
   * - A node whose parent is not the leaf moves the leaf there first, with a `leaf` fact.
   * - What a log cannot hold (too large, too deep, not valid) is kept as it is instead, line by line.
   * - An id that was added before is a doubled line: it is counted, and nothing else.
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
  /** The session goes back to a known entry without saying anything; `id` is that of the line that says so. */
  move(id: string, foreignId: string | null, line: ForeignLine): void;
  /** From here on a foreign id means the entry that another known one means. */
  alias(foreignId: string, knownId: string | null): void;
  /** Whether a foreign id was added, kept or aliased. */
  has(foreignId: string): boolean;
}

/** Where a reader puts what it finds. */
export interface ForeignSink {
  readonly report: ReadReport;
  /** Begins a session; a file may hold several, the main one first. */
  begin(header: ForeignHeader): ForeignLogSink;
}

/**
 * Understands the lines of one file, in order. It never throws for what a file says: a value that it does not know is kept,
 * and one that makes no sense is `report.lose`d.
 */
export interface ForeignReader {
  line(line: ForeignLine): void;
  /** The file rests: what was held back goes out where the program has written what ends it. */
  settle?(): void;
  /** Whether something went on after it went out so: then the file must be read anew. */
  readonly reopened?: boolean;
  /** The file has ended: what was held back, as the next line could have changed it, goes out now. */
  end(): void;
}

/** A session that is to be written in a foreign format. */
export interface ForeignSource {
  readonly header: SessionHeader;
  /** Where the session stands. */
  readonly leafId: string | null;
  /** The log without what is hidden in it, oldest first, a parent before its children; each call reads it anew. */
  entries(): AsyncIterable<Entry>;
  /** The directory that the program is to work in. */
  readonly cwd: string;
  /** The id that the program is to know the session by; the format's `isSessionId` accepts it. */
  readonly foreignId: string;
}

/** What to do with a written file, so that the program goes on with it. */
export interface Handoff {
  /** Where the program looks for it. */
  readonly path: string;
  /** The command lines to run in `cwd`, one after the other; the last one resumes the session. */
  readonly commands: readonly (readonly string[])[];
}

/** How the sessions of one program are read and written. */
export interface ForeignFormat {
  readonly name: FormatName;
  /** What people call the program. */
  readonly title: string;
  /** Whether each line is read for itself, or the whole text is one JSON document. */
  readonly unit: "lines" | "document";
  /** Whether a file is of this format, by how it begins (64 KiB, or less). */
  detects(start: string): boolean;
  /** The directory where the program keeps its sessions. */
  home(): string;
  /** Whether a file below that directory is a session, by its path. */
  isSessionFile(path: string): boolean;
  /** Begins to read a file; `path` is null where the text does not come from one. */
  read(sink: ForeignSink, path: string | null): ForeignReader;
  /** The text of a session in pieces. What the format cannot hold is counted in the report. */
  write(source: ForeignSource, report: WriteReport): AsyncIterable<string>;
  /** Whether the program itself makes session ids of this form. No other id becomes a file name or an argument. */
  isSessionId(id: string): boolean;
  /** An id of that form, always the same for the same text. */
  sessionIdFrom(text: string): string;
  /** How a written session is given to the program. */
  handoff(source: Pick<ForeignSource, "header" | "cwd" | "foreignId">): Handoff;
}

/** A draft with all that an import decides. */
export type ForeignDraft = WholeDraft;
