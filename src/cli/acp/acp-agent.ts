import { SessionError, type SessionHead, SessionNotFoundError } from "../../index.ts";
import { defined } from "../../internal/defined.ts";
import { versionOfPackage } from "../package-files.ts";
import type { acp } from "./acp-sdk.ts";
import { type EditorChat, EditorSession, type SessionSetup } from "./editor-session.ts";

type Handlers = acp.AgentRequestHandlersByMethod;

const LISTED_MAX = 50;
const OF_PARAMETERS: ReadonlySet<string> = new Set(["INVALID_OPTION", "INVALID_QUERY", "INVALID_ID", "NOT_SUPPORTED"]);
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
  readonly #chat: EditorChat;
  readonly #open = new Map<string, EditorSession>();

  constructor(sdk: typeof acp, chat: EditorChat) {
    this.#sdk = sdk;
    this.#chat = chat;
  }

  /** What answers an editor. Methods that are not here are refused as unknown. */
  get app(): acp.AgentApp {
    const app = this.#sdk.agent({ name: "skein" });
    for (const [method, handler] of Object.entries({ ...this.#sessions(), ...this.#turns() }))
      app.onRequest(method as "initialize", this.#refusing(handler as Handlers["initialize"]));
    return app.onNotification("session/cancel", ({ params }) => this.#open.get(params.sessionId)?.cancel());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  #sessions() {
    const { manager } = this.#chat;
    return {
      initialize: () => ({ ...HELLO, agentInfo: { name: "skein", title: "Skein", version: versionOfPackage() } }),
      "auth/status": () => ({ state: "not_required" }),
      authenticate: ({ params: { methodId } }) => {
        throw new SessionError("INVALID_OPTION", `There is no method ${methodId}: nobody has to sign in here.`);
      },
      "session/list": async ({ params: { cwd, cursor } }) => {
        const page = defined({ cwd: cwd ?? undefined, cursor: cursor ?? undefined });
        const { items, next } = await manager.list({ status: ["active", "suspended"], limit: LISTED_MAX, ...page });
        const said = items.filter(({ messageCount }) => messageCount > 0);
        return { sessions: said.map(sessionInfo), nextCursor: next };
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
      "session/close": async ({ params: { sessionId } }) => {
        this.#session(sessionId);
        await this.#close(sessionId);
      },
      "session/delete": async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        if (!(await manager.delete(sessionId))) throw new SessionNotFoundError(sessionId);
      },
    } satisfies Partial<Handlers>;
  }

  #turns() {
    return {
      "session/new": async ({ params, client }) => {
        const session = await this.#enter(client, params);
        return { sessionId: session.id, ...session.settings };
      },
      "session/load": async ({ params, client }) => {
        const session = await this.#enter(client, params, params.sessionId);
        await session.replay();
        return session.settings;
      },
      "session/resume": async ({ params, client }) => (await this.#enter(client, params, params.sessionId)).settings,
      "session/fork": async ({ params, client }) => {
        const { sessionId } = await this.#chat.manager.fork(params.sessionId, "fork", { turns: false });
        return { sessionId, ...(await this.#enter(client, params, sessionId)).settings };
      },
      "session/prompt": ({ params, signal }) => {
        const session = this.#session(params.sessionId);
        signal.addEventListener("abort", () => session.cancel(), { once: true });
        return session.prompt(params.prompt);
      },
      "session/set_mode": ({ params }) => this.#session(params.sessionId).set("mode", params.modeId),
      "session/set_config_option": async ({ params }) => {
        const session = this.#session(params.sessionId);
        await session.set(params.configId, params.value);
        return { configOptions: session.settings.configOptions };
      },
    } satisfies Partial<Handlers>;
  }

  async #enter(editor: acp.AgentContext, setup: SessionSetup, id?: string): Promise<EditorSession> {
    const session = await EditorSession.open(this.#chat, editor, setup, id);
    await this.#close(session.id);
    this.#open.set(session.id, session);
    // The editor hears of a new session by the answer, which goes out first.
    setImmediate(() => void session.introduce().catch(() => {}));
    return session;
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

  /** Gives an editor our errors with their sentence, and with the code that they have in Skein. */
  #refusing<Context, Answer>(handler: (context: Context) => Answer | Promise<Answer>) {
    return async (context: Context): Promise<Answer> => {
      try {
        return await handler(context);
      } catch (error) {
        if (!(error instanceof SessionError)) throw error;
        const { code, message, sessionId } = error as SessionNotFoundError;
        const number = code === "SESSION_NOT_FOUND" ? -32002 : OF_PARAMETERS.has(code) ? -32602 : -32603;
        throw new this.#sdk.RequestError(number, message, { code, sessionId });
      }
    };
  }
}

function sessionInfo({ header, name, firstMessage, modifiedAt }: SessionHead): acp.SessionInfo {
  const cwd = header.cwd ?? process.cwd();
  return { sessionId: header.id, cwd, title: name ?? firstMessage, updatedAt: modifiedAt };
}
