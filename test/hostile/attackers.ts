import { readdirSync } from "node:fs";
import { type Answer, sendRequest } from "../http/server-support.ts";
import { sendRaw } from "../http/raw-request.ts";
import { type Attacker, at, type Canary, must } from "./attack.ts";

/** The parts of an attacker. */
export interface AttackerInit {
  readonly url: string;
  readonly userId: string;
  readonly token: string | null;
  readonly canary: Canary;
  readonly directory: string;
  readonly mark: string;
}

const PIECE_BYTES = 1024 * 1024;
const STEP_MS_MAX = 10_000;

/** A client that sends unexpected requests. */
export function createAttacker({ url, userId, token, canary, directory, mark }: AttackerInit): Attacker {
  const mine = token === null ? {} : { token };
  const call: Attacker["call"] = (method, path, body, options = {}) =>
    sendRequest(`${url}${path}`, method, body, { ...mine, ...options });
  const head: Attacker["head"] = (method, path, ...headers) => {
    const authorization = token === null ? [] : [`Authorization: Bearer ${token}`];
    const lines = [`${method} ${path} HTTP/1.1`, "Host: localhost", "Connection: close", ...authorization, ...headers];
    return `${lines.join("\r\n")}\r\n\r\n`;
  };
  const raw: Attacker["raw"] = async (...pieces) => readRaw(await sendRaw(url, ...pieces));
  const post: Attacker["post"] = (path, body, type = "application/json") => {
    const bytes = Buffer.from(body as Uint8Array);
    const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
      bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
    );
    return raw(head("POST", path, `Content-Type: ${type}`, `Content-Length: ${bytes.length}`), ...pieces);
  };
  return {
    url,
    userId,
    token,
    canary,
    call,
    raw,
    head,
    post,
    importLog: (lines) => {
      const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
      return call("POST", "/api/import", `${texts.join("\n")}\n`, {
        headers: { "content-type": "application/jsonl" },
      });
    },
    async session(init = {}) {
      const made = await call("POST", "/api/sessions", init);
      must(made.status === 201, "The attacker has no session", made);
      return made.body.header.id as string;
    },
    async settled(sessionId, runId) {
      let answer: Answer | null = null;
      await until(async () => {
        answer = await call("GET", at(sessionId, `/runs/${runId}`));
        return (
          answer.status !== 200 ||
          !["requested", "running"].includes(answer.body.status) ||
          answer.body.questions.length > 0
        );
      });
      return answer as unknown as Answer;
    },
    mark,
    leftMark: () => marksIn(directory).includes(mark),
  };
}

/** Starts a run in a session, and resolves to how it settles. */
export async function runIn(attacker: Attacker, sessionId: string, input: unknown): Promise<Answer> {
  const started = await attacker.call("POST", at(sessionId, "/runs"), { input });
  return started.status === 202 ? attacker.settled(sessionId, started.body.runId) : started;
}

/** An answer as it came over the wire; of several, the first. */
export function readRaw(text: string): Answer {
  const end = text.indexOf("\r\n\r\n");
  const [line = "", ...lines] = text.slice(0, Math.max(end, 0)).split("\r\n");
  const headers = new Headers();
  for (const each of lines) {
    const colon = each.indexOf(":");
    headers.append(each.slice(0, colon), each.slice(colon + 1).trim());
  }
  const sent = text.slice(end + 4);
  const body = headers.get("transfer-encoding") === "chunked" ? unchunked(sent) : sent;
  const length = headers.get("content-length");
  const whole = length === null ? body : Buffer.from(body).subarray(0, Number(length)).toString();
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1] ?? 0);
  const json = headers.get("content-type")?.includes("json") === true && whole !== "";
  return { status, headers, text: whole, body: json ? JSON.parse(whole) : null };
}

function unchunked(sent: string): string {
  const pieces: Buffer[] = [];
  let rest = Buffer.from(sent);
  for (;;) {
    const end = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.subarray(0, Math.max(end, 0)).toString(), 16);
    if (!(size > 0)) return Buffer.concat(pieces).toString();
    pieces.push(rest.subarray(end + 2, end + 2 + size));
    rest = rest.subarray(end + 4 + size);
  }
}

/** The names of the files that a command of an attack has left in a directory. */
export function marksIn(directory: string): readonly string[] {
  const found = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return found.flatMap((path) => /(?:^|\/)(pwned[^/]*)$/.exec(path)?.[1] ?? []);
}

/** Asks until it is so. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const startMs = performance.now(); !(await isSo()); ) {
    must(performance.now() - startMs < STEP_MS_MAX, "It did not come about in time.");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
