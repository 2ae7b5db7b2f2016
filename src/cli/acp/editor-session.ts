import { isAbsolute } from "node:path";
import {
  type Approval,
  type Content,
  SessionBusyError,
  SessionError,
  type SessionTree,
  UNASKED,
  type Unasked,
} from "../../index.ts";
import { openRunsOf } from "../../lifecycle/runs/list-runs.ts";
import { show } from "../../session/errors.ts";
import type { McpTools } from "../../tools/mcp/index.ts";
import { CHAT_COMMANDS } from "../chat/chat-commands.ts";
import type { ChatOutput } from "../chat/chat-output.ts";
import { type ChatInit, ChatSession } from "../chat/chat-session.ts";
import { REASONS } from "../chat/run-chat.ts";
import { AT_TERMINAL } from "../open-manager.ts";
import { approvalOf, questionsOf } from "../open-questions.ts";
import { workspaceAt } from "../options/workspace-option.ts";
import type { acp, SessionSettings } from "./acp-sdk.ts";
import { openServers } from "./open-servers.ts";
import { contentOf } from "./prompt-content.ts";
import { SessionUpdates, spoken, stopReasonAfter } from "./session-updates.ts";
import { modelName } from "../chat/model-name.ts";
import { offeredModels } from "../options/offered-models.ts";

/** The commands of a chat that stay in their session and need no terminal. */
const COMMANDS: readonly string[] = [
  ...["tree", "branch", "undo", "retry", "compact", "label", "name"],
  ...["checkpoint", "checkpoints", "restore", "context", "cost"],
];

/** The part of a chat that the command line says. */
export type EditorChat = Pick<ChatInit, "manager" | "models" | "unasked" | "model" | "system">;

/** Where an editor wants a session to work, and with which servers. */
export type SessionSetup = Pick<acp.ForkSessionRequest, "cwd" | "mcpServers">;

/** A session that an editor has open: a chat whose lines are the editor's prompts. */
export class EditorSession implements AsyncDisposable {
  readonly #editor: acp.AgentContext;
  readonly #chat: ChatSession;
  readonly #servers: readonly McpTools[];
  readonly #updates: SessionUpdates;
  #answering: Promise<acp.PromptResponse> | null = null;
  #cancelled = false;

  private constructor(editor: acp.AgentContext, chat: ChatSession, servers: readonly McpTools[]) {
    this.#editor = editor;
    this.#chat = chat;
    this.#servers = servers;
    this.#updates = new SessionUpdates(chat.workspace);
  }

  /**
   * Opens the session of an id, else a new one, in the directory and with the servers that the editor names.
   *
   * @throws {SessionError} `INVALID_OPTION` for a directory that is not there, `SESSION_NOT_FOUND`, and as `openServers` does.
   */
  static async open(
    init: EditorChat,
    editor: acp.AgentContext,
    setup: SessionSetup,
    id?: string,
  ): Promise<EditorSession> {
    const { cwd, mcpServers = [] } = setup;
    if (!isAbsolute(cwd)) throw new SessionError("INVALID_OPTION", `cwd is ${show(cwd)}; give an absolute path.`);
    const workspace = await workspaceAt(cwd, "cwd");
    const servers = await openServers(mcpServers, workspace);
    const tools = servers.flatMap((server) => server.tools);
    const chat = new ChatSession({ ...init, workspace, tools, questions: "asked" });
    const session = new EditorSession(editor, chat, servers);
    try {
      if (id === undefined) await chat.create();
      else for await (const output of chat.enter(id)) await session.#show(output);
      return session;
    } catch (error) {
      await session[Symbol.asyncDispose]();
      throw error;
    }
  }

  get id(): string {
    return this.#tree.id;
  }

  get settings(): SessionSettings {
    return settingsOf(this.#chat);
  }

  /** Sets an option for the turns to come. @throws {SessionError} `INVALID_OPTION` for one that is not there. */
  async set(option: string, value: unknown): Promise<void> {
    if (option === "model" && typeof value === "string") await this.#chat.useModel(value);
    else if (option === "mode" && UNASKED.includes(value as Unasked)) this.#chat.unasked = value as Unasked;
    else throw new SessionError("INVALID_OPTION", `A session cannot set ${show(option)} to ${show(value)}.`);
    const { modes, configOptions } = this.settings;
    await this.#tell({ sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
    await this.#tell({ sessionUpdate: "config_option_update", configOptions });
  }

  /** Tells the editor what was said so far on the active path. */
  async replay(): Promise<void> {
    for (const entry of await this.#tree.getBranch()) {
      if (entry.type === "message") await this.#tell(...this.#updates.said(entry.message));
    }
  }

  /** Tells the editor which commands there are. */
  async introduce(): Promise<void> {
    const availableCommands = COMMANDS.map((name) => {
      const { summary: description = "", usage = "" } = CHAT_COMMANDS[name] ?? {};
      const hint = usage.split(" ").slice(1).join(" ");
      return { name, description, ...(hint !== "" && { input: { hint } }) };
    });
    await this.#tell({ sessionUpdate: "available_commands_update", availableCommands });
  }

  /** Says something, and tells the editor what comes of it. @throws {SessionError} `SESSION_BUSY` while it is answered. */
  async prompt(blocks: readonly acp.ContentBlock[]): Promise<acp.PromptResponse> {
    if (this.#answering !== null) throw new SessionBusyError(this.id, "another prompt of this editor");
    this.#cancelled = false;
    this.#answering = this.#answer(contentOf(blocks)).finally(() => {
      this.#answering = null;
    });
    return this.#answering;
  }

  /** Stops what is under way. */
  cancel(): void {
    this.#cancelled = true;
    this.#chat.interrupt();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cancel();
    await this.#answering?.catch(() => {});
    await this.#chat[Symbol.asyncDispose]();
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  get #tree(): SessionTree {
    return this.#chat.tree as SessionTree;
  }

  async #answer(content: Content): Promise<acp.PromptResponse> {
    let stopReason: acp.PromptResponse["stopReason"] = "end_turn";
    try {
      for await (const output of this.#outputs(content)) {
        // Whoever cancelled may have done so before there was anything to stop.
        if (this.#cancelled) this.#chat.interrupt();
        await this.#show(output);
        if (output.type === "run-event") stopReason = stopReasonAfter(output.event, stopReason);
      }
    } catch (error) {
      if (!(error instanceof SessionError && error.code === "ABORTED")) throw error;
      stopReason = "cancelled";
    }
    const { name, firstMessage, modifiedAt } = await this.#tree.refresh();
    await this.#tell({ sessionUpdate: "session_info_update", title: name ?? firstMessage, updatedAt: modifiedAt });
    return { stopReason };
  }

  async *#outputs(content: Content): AsyncGenerator<ChatOutput> {
    const line = typeof content === "string" ? content : "";
    if (COMMANDS.includes(/^\/(\w+)(?=\s|$)/.exec(line)?.[1] ?? "")) return yield* this.#chat.take(line);
    yield* this.#recover();
    if (this.#cancelled) throw new SessionError("ABORTED", "Stopped.");
    yield* this.#chat.say(content);
  }

  /** Goes on first with a run that was interrupted, or that waits for an answer, which the editor is asked for. */
  async *#recover(): AsyncGenerator<ChatOutput> {
    const { manager } = this.#chat;
    const runs = await openRunsOf(manager.store, await this.#tree.refresh());
    for (const waiting of questionsOf(runs.filter(({ state }) => state === "parked"))) {
      const word = await this.#permission(approvalOf(waiting));
      if (word === null) throw new SessionError("ABORTED", "Stopped.");
      if (word.approved) await manager.approve(this.id, waiting.question, {}, AT_TERMINAL);
      else await manager.deny(this.id, waiting.question, { reason: word.reason }, AT_TERMINAL);
    }
    if (runs.length > 0) yield* this.#chat.recover(this.#tree);
  }

  async #show(output: ChatOutput): Promise<void> {
    if (output.type === "problem") throw new SessionError("INVALID_OPTION", output.text);
    if (output.type === "notice") return this.#tell(...spoken("agent_message_chunk", output.text));
    if (output.type !== "run-event") return;
    const { event } = output;
    if (event.type === "run-failed" && event.error.code !== "ABORTED") throw event.error.cause;
    await this.#tell(...this.#updates.happened(event));
    // Other calls go on while the editor is asked.
    if (event.type === "approval-required") void this.#ask(event.approval).catch(() => this.cancel());
    const { contextWindow: size } = this.#chat.model;
    if (event.type === "usage" && size !== undefined)
      await this.#tell({ sessionUpdate: "usage_update", used: event.usage.totalTokens, size });
  }

  async #ask(approval: Approval): Promise<void> {
    const word = await this.#permission(approval);
    if (word !== null) await this.#chat.decide(approval.question, word);
    // A word on a turn that is over stops no other one.
    else if (this.#chat.pendingApprovals.some(({ question }) => question === approval.question)) this.cancel();
  }

  /** A person's word on a call; null where they stop the turn instead. */
  async #permission(approval: Approval): Promise<{ approved: true } | { approved: false; reason: string } | null> {
    await this.#tell(this.#updates.waits(approval));
    const request: acp.RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: this.#updates.asked(approval),
      options: [
        { optionId: "allow", kind: "allow_once", name: "Allow" },
        { optionId: "reject", kind: "reject_once", name: "Reject" },
      ],
    };
    const answer = await this.#editor.request("session/request_permission", request).catch(() => null);
    if (answer === null) return { approved: false, reason: REASONS.nobody };
    if (answer.outcome.outcome !== "selected") return null;
    return answer.outcome.optionId === "allow" ? { approved: true } : { approved: false, reason: REASONS.no };
  }

  async #tell(...updates: readonly acp.SessionUpdate[]): Promise<void> {
    for (const update of updates) {
      const notification: acp.SessionNotification = { sessionId: this.id, update };
      await this.#editor.notify("session/update", notification);
    }
  }
}

/** What an editor can set in a session, and how it is set: what runs unasked, as modes and as an option, and the model. */
function settingsOf({ unasked, model }: Pick<ChatSession, "unasked" | "model">): SessionSettings {
  const modes = UNASKED.map((id) => ({ id, name: `Unasked: ${id}` }));
  const models = [...new Set([model, ...offeredModels()].map(modelName))];
  const select = (id: string, name: string, currentValue: string, options: { value: string; name: string }[]) =>
    ({ type: "select", id, category: id, name, currentValue, options }) as const;
  return {
    modes: { currentModeId: unasked, availableModes: modes },
    configOptions: [
      select(
        "mode",
        "Runs unasked",
        unasked,
        modes.map(({ id: value, name }) => ({ value, name })),
      ),
      select(
        "model",
        "Model",
        modelName(model),
        models.map((value) => ({ value, name: value })),
      ),
    ],
  };
}
