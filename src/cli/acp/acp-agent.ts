import { isAbsolute } from "node:path";
import { SessionError, SessionNotFoundError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import type { McpServer, McpToolsOptions } from "../../tools/mcp/index.ts";
import type { ChatInit } from "../chat/chat-session.ts";
import { openMcpServers } from "../options/program-tools.ts";
import { existingWorkspaceAt } from "../options/workspace-option.ts";
import { VERSION } from "../../internal/version.ts";
import type { acp } from "./acp-sdk.ts";
import { EditorSession } from "./editor-session.ts";
import { infoOf } from "./session-updates.ts";

type Handlers = acp.AgentRequestHandlersByMethod;
type Setup = Pick<acp.ForkSessionRequest, "cwd" | "mcpServers">;

const HELLO = {
  protocolVersion: 1,
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    mcpCapabilities: { http: true },
    sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {}, status: {}, title: {} },
    auth: { status: {} },
  },
  authMethods: [],
};

/** The sessions of a store as an agent of one editor, by the Agent Client Protocol. */
export class AcpAgent implements AsyncDisposable {
  readonly #sdk: typeof acp;
  readonly #chat: Omit<ChatInit, "workspace">;
  readonly #open = new Map<string, EditorSession>();

  constructor(sdk: typeof acp, chat: Omit<ChatInit, "workspace">) {
    this.#sdk = sdk;
    this.#chat = chat;
  }

  /** The state behind the methods of the agent. Methods that are not here are refused as unknown. */
  get app(): acp.AgentApp {
    const app = this.#sdk.agent({ name: "skein" });
    for (const [method, handler] of Object.entries(this.#handlers()))
      app.onRequest(method as "initialize", (context) =>
        Promise.resolve(context)
          .then(handler as Handlers["initialize"])
          .catch((error) => Promise.reject(this.#refusal(error))),
      );
    return app.onNotification(
      "session/cancel",
      ({ params }) => void this.#open.get(params.sessionId)?.chat.interrupt(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  #handlers() {
    const { manager } = this.#chat;
    return {
      initialize: () => ({ ...HELLO, agentInfo: { name: "skein", title: "Skein", version: VERSION } }),
      "auth/status": () => ({ state: "not_required" }),
      authenticate: ({ params: { methodId } }) => {
        throw new SessionError("INVALID_OPTION", `There is no method ${methodId}: nobody has to sign in here.`);
      },
      "session/new": ({ params, client }) => this.#enter(client, params),
      "session/resume": ({ params, client }) => this.#enter(client, params, params.sessionId),
      "session/load": ({ params, client }) => this.#enter(client, params, params.sessionId, true),
      "session/fork": async ({ params, client }) => {
        const { sessionId } = await manager.fork(params.sessionId, "fork", { turns: false });
        return this.#enter(client, params, sessionId);
      },
      "session/prompt": ({ params, signal }) => {
        const session = this.#session(params.sessionId);
        signal.addEventListener("abort", () => session.chat.interrupt(), { once: true });
        return session.prompt(params.prompt);
      },
      "session/set_mode": async ({ params }) => void (await this.#session(params.sessionId).set("mode", params.modeId)),
      "session/set_config_option": ({ params }) => this.#session(params.sessionId).set(params.configId, params.value),
      "session/list": async ({ params: { cwd, cursor } }) => {
        const wanted = { ...(cwd != null && { cwd }), ...(cursor != null && { cursor }) };
        const { items, next } = await manager.list({ status: ["active", "suspended"], ...wanted });
        const said = items.filter(({ messageCount }) => messageCount > 0);
        return { sessions: said.map(infoOf), nextCursor: next };
      },
      "session/status": async ({ params: { sessionId } }) => {
        if ((await manager.head(sessionId)) === null) throw new SessionNotFoundError(sessionId);
        return { status: this.#open.has(sessionId) ? "open" : "saved" };
      },
      "session/set_title": async ({ params: { sessionId, title } }) => {
        await using tree = await manager.open(sessionId);
        await tree.setName(title);
        return { title };
      },
      "session/close": ({ params: { sessionId } }) => this.#close(sessionId),
      "session/delete": async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        if (!(await manager.delete(sessionId))) throw new SessionNotFoundError(sessionId);
      },
    } satisfies Partial<Handlers>;
  }

  /** Opens the session of an id, else a new one, in the directory and with the servers that the editor names. */
  async #enter(editor: acp.AgentContext, { cwd, mcpServers = [] }: Setup, id?: string, replays = false) {
    if (!isAbsolute(cwd)) throw new SessionError("INVALID_OPTION", `cwd is ${show(cwd)}; give an absolute path.`);
    const workspace = await existingWorkspaceAt(cwd, "cwd");
    const servers = await openMcpServers(mcpServers.map((server) => serverOf(server, workspace)));
    const session = new EditorSession(editor, { ...this.#chat, workspace, tools: servers.tools }, servers);
    try {
      await session.enter(id, replays);
    } catch (error) {
      await session[Symbol.asyncDispose]();
      throw error;
    }
    const { id: sessionId } = session.chat.openTree;
    await this.#close(sessionId);
    this.#open.set(sessionId, session);
    // The editor learns of a new session from the response, which is sent first.
    setImmediate(() => void session.introduce().catch(() => {}));
    return { sessionId, ...(await session.settings()) };
  }

  #session(id: string): EditorSession {
    const session = this.#open.get(id);
    if (session === undefined) throw new SessionNotFoundError(id);
    return session;
  }

  async #close(id: string): Promise<void> {
    const session = this.#open.get(id);
    this.#open.delete(id);
    await session?.[Symbol.asyncDispose]();
  }

  /** An error as an editor takes it: with its sentence, and with the code that it has in Skein. */
  #refusal(error: unknown): unknown {
    if (!(error instanceof SessionError)) return error;
    const { code, message, sessionId } = error as SessionNotFoundError;
    const number = code === "SESSION_NOT_FOUND" ? -32002 : /^INVALID_|^NOT_SUPPORTED$/.test(code) ? -32602 : -32603;
    return new this.#sdk.RequestError(number, message, { code, sessionId });
  }
}

/** Tools of these servers need approval for each call, like those of any untrusted server. */
function serverOf(server: acp.McpServer, cwd: string): McpServer & McpToolsOptions {
  const prefix = `${server.name}_`;
  const valuesOf = (pairs: readonly { name: string; value: string }[]) =>
    Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
  if (!("type" in server))
    return { command: server.command, args: server.args, env: valuesOf(server.env), cwd, prefix };
  if (server.type === "http") return { url: server.url, headers: valuesOf(server.headers), prefix };
  const text = `The MCP server ${server.name} is of the type ${server.type}; give a program, or one of the type http.`;
  throw new SessionError("NOT_SUPPORTED", text);
}
