import type { CheckedDraft } from "../../session/draft.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { PathSummary, SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type { DriverForkOptions, ReadRange } from "../../session/store-driver.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { runLater } from "./asking.ts";
import { readPages } from "./read-pages.ts";
import { RowAppender } from "./row-appender.ts";
import { RowMaker } from "./row-maker.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import type { LogRange } from "./segments.ts";
import type { SessionCache } from "./session-cache.ts";

/** The part of a `StoreDriver` that is the same wherever a log is rows; what a store extends brings the rest. */
export abstract class RowDriver<Part extends LogRange, Session extends RowSession<Part>> {
  /** Set where the port answers at once, so that no append has to wait for another. */
  readonly appendsAtOnce?: true;
  readonly #port: RowPort<Part, Session>;
  readonly #reader: RowReader<Part, Session>;
  readonly #appender: RowAppender<Part, Session>;
  readonly #maker: RowMaker<Part, Session>;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(port: RowPort<Part, Session>, cache: SessionCache<Session>, clock: () => Date) {
    this.#port = port;
    this.#reader = new RowReader(port, cache);
    this.#appender = new RowAppender(this.#reader, clock);
    this.#maker = new RowMaker(this.#reader, clock);
  }

  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    return runLater(this.#maker.create(header, drafts, options));
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const work = (): Promise<AppendResult> => runLater(this.#appender.append(sessionId, drafts, options));
    if (this.appendsAtOnce === true) return work();
    const before = this.#turns.get(sessionId);
    const appending = before === undefined ? work() : before.then(work);
    const end = (): void => {
      if (this.#turns.get(sessionId) === turn) this.#turns.delete(sessionId);
    };
    const turn = appending.then(end, end);
    this.#turns.set(sessionId, turn);
    return appending;
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return (await this.#load(sessionId))?.head ?? null;
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = await this.#load(sessionId);
    if (session === null) return;
    for await (const page of readPages(this.#port, session, range))
      for (const body of page) yield JSON.parse(body) as Entry;
  }

  async readJson(sessionId: string, range: ReadRange, charactersMax: number): Promise<readonly string[]> {
    const session = await this.#load(sessionId);
    const texts: string[] = [];
    if (session === null) return texts;
    let characters = 0;
    for await (const page of readPages(this.#port, session, range)) {
      for (const text of page) {
        texts.push(text);
        characters += text.length;
        if (characters > charactersMax) return texts;
      }
    }
    return texts;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const session = await this.#load(sessionId);
    return session === null ? null : runLater(this.#reader.findEntry(session, entryId));
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const session = await this.#load(sessionId);
    if (session === null) return null;
    return (await runLater(this.#reader.find(session, [entryId]))).get(entryId)?.path ?? null;
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const session = await this.#load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    return readSettings(last, (seq) => runLater(this.#reader.settingsAt(session.segments, seq)));
  }

  fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead> {
    return runLater(this.#maker.fork(sourceId, header, options));
  }

  #load(sessionId: string): Promise<Session | null> {
    return runLater(this.#reader.load(sessionId));
  }
}
