import { type ChildProcess, spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import {
  type AgentRequestMethod,
  type AgentRequestParamsByMethod,
  type AgentRequestResponsesByMethod,
  type ClientConnection,
  client,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { onTestFinished } from "vitest";
import { builtProgram } from "./run-skein.ts";

/** The answer of an editor to a permission request. */
export type Word = "allow" | "reject" | "cancelled";

/** How an editor starts the program. */
export interface StartEditor {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Answers permission requests; a promise that never resolves leaves them open. */
  readonly decide?: (request: RequestPermissionRequest) => Word | Promise<Word>;
}

/** An editor, with the SDK's client, and the program that it has started; both are closed after the test. */
export class Editor {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly updates: SessionUpdate[] = [];
  readonly asked: RequestPermissionRequest[] = [];
  /** The standard output and the error output of the program. */
  output = "";
  complaints = "";
  #connection: ClientConnection;

  private constructor(child: ChildProcess, { decide = () => "allow" }: StartEditor) {
    this.child = child;
    this.ended = new Promise((resolve) => child.on("close", resolve));
    child.stderr?.on("data", (part: Buffer) => {
      this.complaints += part.toString();
    });
    child.stdout?.on("data", (part: Buffer) => {
      this.output += part.toString();
    });
    child.stdin?.on("error", () => {});
    const [input, output] = [Writable.toWeb(child.stdin as Writable), Readable.toWeb(child.stdout as Readable)];
    this.#connection = client({ name: "test" })
      .onNotification("session/update", ({ params }) => void this.updates.push(params.update))
      .onRequest("session/request_permission", async ({ params }) => {
        this.asked.push(params);
        const word = await decide(params);
        if (word === "cancelled") return { outcome: { outcome: "cancelled" } };
        const { optionId } = params.options.find(({ kind }) => kind.startsWith(word)) ?? { optionId: word };
        return { outcome: { outcome: "selected", optionId } };
      })
      .connect(ndJsonStream(input, output as ReadableStream<Uint8Array>));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  /** Starts the program with a store in `home`, and initializes the connection. */
  static async start(home: string, options: StartEditor = {}): Promise<Editor> {
    const env = { ...process.env, SKEIN_HOME: home, ...options.env };
    const argv = ["--no-warnings", builtProgram(), "acp", ...(options.args ?? [])];
    const editor = new Editor(spawn(process.execPath, argv, { env, cwd: home }), options);
    await editor.ask("initialize", { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    return editor;
  }

  /** Sends a request of the protocol. */
  ask<M extends AgentRequestMethod>(
    method: M,
    params: AgentRequestParamsByMethod[M],
  ): Promise<AgentRequestResponsesByMethod[M]> {
    return this.#connection.agent.request<M>(method, params);
  }

  /** Sends a request that the protocol does not know or allow. */
  askAnything(method: string, params: unknown): Promise<unknown> {
    return this.#connection.agent.request<unknown, unknown>(method, params);
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#connection.agent.notify("session/cancel", { sessionId });
  }

  /** Creates a session in a directory; resolves to its id. */
  async begin(cwd: string): Promise<string> {
    return (await this.ask("session/new", { cwd, mcpServers: [] })).sessionId;
  }

  /** Sends a prompt; resolves to the stop reason of the turn. */
  async say(sessionId: string, text: string): Promise<string> {
    return (await this.ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] })).stopReason;
  }

  /** The updates since the last call of this method, in short form. */
  told(): string[] {
    return this.updates.splice(0).flatMap(inShort);
  }

  /** Closes the connection as an editor that exits does; resolves to the program's exit code. */
  leave(): Promise<number | null> {
    this.child.stdin?.end();
    return this.ended;
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

/** An update in short form; callers join the chunks of one answer. */
function inShort(update: SessionUpdate): string[] {
  switch (update.sessionUpdate) {
    case "user_message_chunk":
    case "agent_message_chunk":
    case "agent_thought_chunk": {
      const who = update.sessionUpdate.split("_")[update.sessionUpdate === "agent_thought_chunk" ? 1 : 0];
      return [`${who}: ${update.content.type === "text" ? update.content.text : update.content.type}`];
    }
    case "tool_call":
    case "tool_call_update":
      return [`${update.sessionUpdate} ${update.toolCallId} ${update.status} ${update.title ?? ""}`.trim()];
    default:
      return [];
  }
}

/** Joins the chunks of each speaker. */
export function joined(told: readonly string[]): string[] {
  const whole: string[] = [];
  for (const line of told) {
    const [who] = line.split(": ", 1);
    const last = whole.at(-1);
    if (/^(?:agent|thought|user): /.test(line) && last?.startsWith(`${who}: `))
      whole[whole.length - 1] = `${last}${line.slice(`${who}: `.length)}`;
    else whole.push(line);
  }
  return whole;
}
