import type { Answer, CallOptions } from "../http/server-support.ts";

/** The attacker. In every attack, the owner of the canary is another user. */
export type Who = "no token" | "user" | "another user" | "user without the right" | "administrator";

/** The data of the victim, which no attack may read or change. */
export interface Canary {
  readonly userId: string;
  readonly sessionId: string;
  readonly entryId: string;
  readonly checkpointId: string;
  readonly forkId: string;
  /** A session with a run that waits for approval of a command. */
  readonly busyId: string;
  readonly runId: string;
  readonly question: string;
}

/** The resources of an attack: the server's address, a token, and public information about the victim. */
export interface Attacker {
  readonly url: string;
  readonly userId: string;
  readonly token: string | null;
  readonly canary: Canary;
  /** Sends a request with the attacker's token; a value that is not a string is sent as JSON. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  /** Sends bytes as they are, without a token unless they hold one; a connection that ends without an answer is status 0. */
  raw(...pieces: readonly (string | Uint8Array)[]): Promise<Answer>;
  /** The head of a raw request with the attacker's token; the connection ends with the answer. */
  head(method: string, path: string, ...headers: readonly string[]): string;
  /** Sends a large body in one write, and reads the response even if the server does not read the whole body. */
  post(path: string, body: string | Uint8Array, type?: string): Promise<Answer>;
  /** Imports lines; a value that is not a string is sent as JSON. */
  importLog(lines: readonly unknown[]): Promise<Answer>;
  /** Makes a session of the attacker's and resolves to its id. */
  session(init?: object): Promise<string>;
  /** Resolves to a run once it has ended or waits for an answer. */
  settled(sessionId: string, runId: string): Promise<Answer>;
  /** The name of a file that only a command of this attack would make. */
  readonly mark: string;
  /** Whether a file with this name exists in any of the searched directories. */
  leftMark(): boolean;
}

/** The expected response, and a check that the attack had no effect. */
export interface Expectation {
  /** 0 is a connection that was closed without an answer. */
  readonly status: number | readonly number[];
  /** The codes that a refusal may have; left out, any documented one. */
  readonly code?: string | readonly string[];
  /** Throws if the attack succeeded. */
  never?(attacker: Attacker, answer: Answer): void | Promise<void>;
}

/** One attack: a row of the corpus. */
export interface Attack {
  /** A row of docs/threat-model.md. */
  readonly kind: string;
  /** The attack, as a sentence without a subject. */
  readonly name: string;
  readonly who: Who;
  send(attacker: Attacker): Promise<Answer>;
  readonly expect: Expectation;
}

/** Attacks of one kind. */
export function attacks(
  kind: string,
  ...rows: readonly (Omit<Attack, "kind"> | readonly Omit<Attack, "kind">[])[]
): Attack[] {
  return rows.flat().map((row) => ({ ...row, kind }));
}

/** The path of a session's route. */
export function at(sessionId: string, rest = ""): string {
  return `/api/sessions/${encodeURIComponent(sessionId)}${rest}`;
}

/** Throws with the answer where something has happened that must not. */
export function must(holds: boolean, what: string, answer?: Answer): void {
  if (!holds) throw new Error(answer === undefined ? what : `${what}: ${answer.status} ${answer.text.slice(0, 500)}`);
}
