import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { ModelDelta, ModelReply } from "../src/agent/model/model.ts";

/** One response of a server, byte for byte. */
export interface Replay {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Positions at which the body is split into separately sent chunks. */
  readonly cuts?: readonly number[];
  /** The event after the body: its end, a broken connection, or no further data. Without a body, headers are not sent either. */
  readonly after?: "end" | "break" | "hang";
}

/** A recorded request. */
export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A server on this machine that answers every request with given bytes. */
export interface ModelServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Resolves when a request was received. */
  readonly reached: Promise<void>;
  /** Resolves when a client has closed its connection before the end of the response. */
  readonly abandoned: Promise<void>;
}

/** Starts a server that sends the responses in order, and repeats the last one. */
export async function openModelServer(...replays: readonly Replay[]): Promise<ModelServer> {
  const asked: Asked[] = [];
  let onReached = (): void => {};
  let onAbandoned = (): void => {};
  const reached = new Promise<void>((resolve) => (onReached = resolve));
  const abandoned = new Promise<void>((resolve) => (onAbandoned = resolve));
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    const replay = replays[Math.min(asked.length, replays.length - 1)] ?? {};
    asked.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(text || "{}") });
    response.on("close", () => response.writableFinished || onAbandoned());
    onReached();
    const { status = 200, headers = {}, cuts = [], after = "end" } = replay;
    const body = Buffer.from(replay.body ?? "");
    const isJson = body.length === 0 || body.toString("utf8", 0, 1) === "{";
    response.writeHead(status, { "content-type": isJson ? "application/json" : "text/event-stream", ...headers });
    let at = 0;
    for (const cut of [...cuts, body.length]) {
      if (cut > at) await new Promise((resolve) => response.write(body.subarray(at, cut), resolve));
      at = Math.max(at, cut);
    }
    if (after === "end") response.end();
    if (after === "break") response.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    reached,
    abandoned,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The bytes of a provider's response. */
export function wireFixture(folder: "openai" | "anthropic", name: string): Buffer {
  return readFileSync(new URL(`../src/models/${folder}/fixtures/${name}`, import.meta.url));
}

/** The content of a stream: its deltas, and the reply at its end. */
export async function collect(stream: AsyncIterable<ModelDelta> | undefined): Promise<{
  deltas: ModelDelta[];
  reply: ModelReply | undefined;
}> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream ?? []) deltas.push(delta);
  const last = deltas.at(-1);
  return { deltas, reply: last?.type === "finish" ? last.reply : undefined };
}
