import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Checkpoint, Entry, EntryDraft, SessionHead } from "../../src/index.ts";
import type { LeaseInfo, SearchHit, SessionPage } from "../../src/stores/index.ts";
import { createHeader, type SessionHeader } from "../../src/session/log/header.ts";
import { programPath } from "../faults/program-support.ts";
import {
  type CheckpointRequest,
  createdAtOf,
  type ModelDraft,
  type Outcome,
  type Request,
  runOf,
  userOf,
} from "./model.ts";

const END_OF_TIME = "9999-01-01T00:00:00.000Z";

interface Reply {
  readonly value?: unknown;
  readonly refused?: string;
  readonly failed?: string;
}

class Refusal extends Error {
  readonly code: string;
  constructor(code: string) {
    super(`The store refused with ${code}.`);
    this.code = code;
  }
}

/** A child process with its own store handle. It executes one request at a time. */
export class StoreProcess {
  readonly #number: number;
  readonly #child: ChildProcess;
  /** The tokens of the leases that it has acquired, by session. */
  readonly #tokens = new Map<string, number>();

  constructor(number: number) {
    this.#number = number;
    this.#child = fork(programPath("answer.mjs"), { execArgv: ["--no-warnings"] });
  }

  /** Opens the store at an address, and closes the previous one. */
  async open(address: string): Promise<void> {
    await this.#call("open", address);
  }

  /** Runs `checkHeadIsFold` in the process. @throws {Error} if the head is not the fold of the log. */
  async checkHeadIsFold(sessionId: string): Promise<void> {
    await this.#call("checkHeadIsFold", sessionId);
  }

  /** Executes a request in the process and returns the outcome. */
  async ask(request: Request): Promise<Outcome> {
    try {
      return await this.#answer(request);
    } catch (error) {
      if (error instanceof Refusal) return error.code;
      throw error;
    }
  }

  /** Closes the store and ends the process. */
  async end(): Promise<void> {
    if (!this.#child.connected) return;
    const ended = once(this.#child, "exit");
    this.#child.disconnect();
    await ended;
  }

  async #answer(request: Request): Promise<Outcome> {
    switch (request.kind) {
      case "create":
        return [(await this.#call<SessionHead>("create", headerOf(request.session))).version];
      case "append":
        return this.#append(request);
      case "fork": {
        const options = request.at === undefined ? {} : { at: request.at };
        const head = await this.#call<SessionHead>("fork", request.session, headerOf(request.to), options);
        return [head.version, head.leafId, head.header.forkedFrom?.entryId ?? null];
      }
      case "delete":
      case "undelete":
        return [await this.#call<boolean>(request.kind, request.session)];
      case "purge":
        return [await this.#call<number>("purge", END_OF_TIME)];
      case "head": {
        const head = await this.#call<SessionHead | null>("head", request.session);
        if (head === null) return [null];
        return [head.version, head.leafId, head.name, head.status, head.messageCount, head.modifiedAt];
      }
      case "read":
        return (await this.#call<Entry[]>("read", request.session, request.range)).map(lineOf);
      case "entry": {
        const entry = await this.#call<Entry | null>("getEntry", request.session, request.entry);
        return [entry === null ? null : lineOf(entry)];
      }
      case "list":
        return this.#list(request);
      case "count":
        return [await this.#call<number>("count", request.query)];
      case "search": {
        const hits = await this.#call<SearchHit[]>("search", request.text, {});
        return hits.flatMap(({ head, matches }) => [head.header.id, ...matches.map(({ entryId }) => entryId)]);
      }
      case "lease":
      case "renew":
      case "release":
      case "leaseOf":
        return this.#lease(request.kind, request.session);
      default:
        return this.#checkpoint(request);
    }
  }

  async #append({ session, drafts, options, leased }: Extract<Request, { kind: "append" }>): Promise<Outcome> {
    const guard = leased ? { guard: { leaseToken: this.#tokens.get(session) } } : {};
    const result = await this.#call<{ version: number; entries: Entry[] }>("append", session, drafts.map(draftOf), {
      ...options,
      ...guard,
    });
    return [result.version, ...result.entries.map(lineOf)];
  }

  async #list({ query, limit }: Extract<Request, { kind: "list" }>): Promise<Outcome> {
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: SessionPage = await this.#call<SessionPage>("list", { ...query, limit, cursor });
      ids.push(...page.items.map(({ header }) => header.id));
      cursor = page.next;
    }
    return ids;
  }

  async #lease(kind: "lease" | "renew" | "release" | "leaseOf", session: string): Promise<Outcome> {
    if (kind === "leaseOf") return [(await this.#call<LeaseInfo | null>("leaseOf", session))?.runId ?? null];
    if (kind !== "lease") return [(await this.#call(kind, session)) === undefined];
    const { runId, token } = await this.#call<LeaseInfo>("lease", session, runOf(this.#number));
    this.#tokens.set(session, token);
    return [runId];
  }

  async #checkpoint(request: CheckpointRequest): Promise<Outcome> {
    if (request.kind === "checkpoints") {
      return (await this.#call<Checkpoint[]>("listCheckpoints", request.session)).map(noteOf);
    }
    if (request.kind === "saveCheckpoint") {
      const { id, session: sessionId, createdAt, note } = request.checkpoint;
      const position = { version: 0, leafId: null, parentCheckpointId: null };
      await this.#call("saveCheckpoint", { id, sessionId, ...position, createdAt, metadata: { note } });
      return [true];
    }
    if (request.kind === "deleteCheckpoint") return [await this.#call<boolean>("deleteCheckpoint", request.id)];
    const checkpoint = await this.#call<Checkpoint | null>("loadCheckpoint", request.id);
    return [checkpoint === null ? null : noteOf(checkpoint)];
  }

  async #call<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const ended = new AbortController();
    const exit = once(this.#child, "exit", { signal: ended.signal }).then(() => {
      throw new Error(`Process ${this.#number} ended during ${method}.`);
    });
    const reply = once(this.#child, "message", { signal: ended.signal });
    this.#child.send({ method, args });
    try {
      const [{ value, refused, failed }] = (await Promise.race([reply, exit])) as [Reply];
      if (refused !== undefined) throw new Refusal(refused);
      if (failed !== undefined) throw new Error(`Process ${this.#number} failed in ${method}: ${failed}`);
      return value as T;
    } finally {
      ended.abort();
      await Promise.allSettled([reply, exit]);
    }
  }
}

function headerOf(id: string): SessionHeader {
  return createHeader({ id, createdAt: createdAtOf(id), userId: userOf(id) });
}

function lineOf({ id, seq, parentId }: Entry): string {
  return `${seq} ${id} on ${parentId}`;
}

function noteOf({ id, metadata }: Checkpoint): string {
  return `${id} ${metadata.note}`;
}

function draftOf({ id, type, value, timestamp }: ModelDraft): EntryDraft {
  switch (type) {
    case "message":
      return { id, timestamp, type, message: { role: "user", content: value as string } };
    case "leaf":
      return { id, timestamp, type, targetId: value };
    case "label":
      return { id, timestamp, type, targetId: value as string, label: "here" };
    case "session_info":
      return { id, timestamp, type, name: value as string };
    case "status":
      return { id, timestamp, type, status: value as "active" };
  }
}
