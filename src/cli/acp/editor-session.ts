import {
  type Approval,
  type Content,
  SessionBusyError,
  SessionError,
  ASK_POLICIES,
  type AskPolicy,
} from "../../index.ts";
import { show } from "../../session/errors.ts";
import { mcpPart } from "../../tools/mcp/tool-result.ts";
import { CHAT_COMMANDS } from "../chat/chat-commands.ts";
import type { ChatOutput } from "../chat/chat-output.ts";
import { type ChatInit, ChatSession } from "../chat/chat-session.ts";
import { modelName } from "../chat/model-name.ts";
import { offeredModels } from "../options/offered-models.ts";
import type { acp } from "./acp-sdk.ts";
import { infoOf, SessionUpdates, spoken, stopReasonAfter } from "./session-updates.ts";

/** The commands of a chat that stay in their session and need no terminal. */
const COMMANDS: readonly string[] =
  "tree branch undo retry compact label name checkpoint checkpoints restore context cost".split(" ");

/** A session that an editor has open: a chat whose lines are the editor's prompts. */
export class EditorSession implements AsyncDisposable {
  readonly chat: ChatSession;
  readonly #editor: acp.AgentContext;
  readonly #servers: AsyncDisposable;
  readonly #updates: SessionUpdates;
  #answering: Promise<acp.PromptResponse> | null = null;

  constructor(editor: acp.AgentContext, chat: ChatInit, servers: AsyncDisposable) {
    this.#editor = editor;
    this.chat = new ChatSession(chat);
    this.#servers = servers;
    this.#updates = new SessionUpdates(chat.workspace);
  }

  /**
   * Opens the session with an id, or a new one; with `replays`, sends the messages of its active path to the editor.
   */
  async enter(id: string | undefined, replays: boolean): Promise<void> {
    if (id === undefined) return void (await this.chat.create());
    for await (const output of this.chat.enter(id)) await this.#show(output);
    for (const entry of replays ? await this.chat.openTree.getBranch() : [])
      if (entry.type === "message") await this.#tell(...this.#updates.said(entry.message));
  }

  /** The settings and their values: which calls need approval, as modes and as an option, and the model. */
  async settings() {
    const { ask, modelName: model } = this.chat;
    const models = [...new Set([model, ...(await offeredModels()).models.map(modelName)])];
    return {
      modes: { currentModeId: ask, availableModes: ASK_POLICIES.map((id) => ({ id, name: `Ask: ${id}` })) },
      configOptions: [choice("mode", "Ask", ask, ASK_POLICIES), choice("model", "Model", model, models)],
    };
  }

  /** Sets an option for the turns to come. @throws {SessionError} `INVALID_OPTION` for one that is not there. */
  async set(option: string, value: unknown) {
    if (option === "model" && typeof value === "string") await this.chat.useModel(value);
    else if (option === "mode" && ASK_POLICIES.includes(value as AskPolicy)) this.chat.ask = value as AskPolicy;
    else throw new SessionError("INVALID_OPTION", `A session cannot set ${show(option)} to ${show(value)}.`);
    const settings = await this.settings();
    await this.#tell({ sessionUpdate: "current_mode_update", currentModeId: settings.modes.currentModeId });
    await this.#tell({ sessionUpdate: "config_option_update", configOptions: settings.configOptions });
    return settings;
  }

  /** Sends the available commands to the editor. */
  async introduce(): Promise<void> {
    const availableCommands = COMMANDS.map((name) => {
      const { summary: description = "", usage = "" } = CHAT_COMMANDS[name] ?? {};
      const hint = usage.split(" ").slice(1).join(" ");
      return { name, description, ...(hint !== "" && { input: { hint } }) };
    });
    await this.#tell({ sessionUpdate: "available_commands_update", availableCommands });
  }

  /** Answers a prompt. @throws {SessionError} `SESSION_BUSY` while another is answered, `INVALID_OPTION` for sound. */
  async prompt(blocks: readonly acp.ContentBlock[]): Promise<acp.PromptResponse> {
    if (this.#answering !== null) throw new SessionBusyError(this.chat.openTree.id, "another prompt of this editor");
    if (blocks.some(({ type }) => type === "audio"))
      throw new SessionError("INVALID_OPTION", "A prompt takes text, images and files here, and no audio.");
    const parts = blocks.map(mcpPart);
    const content = parts.length === 1 && parts[0]?.type === "text" ? parts[0].text : parts;
    this.#answering = this.#answer(content).finally(() => {
      this.#answering = null;
    });
    return this.#answering;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.chat.interrupt();
    await this.#answering?.catch(() => {});
    await this.chat[Symbol.asyncDispose]();
    await this.#servers[Symbol.asyncDispose]();
  }

  async #answer(content: Content): Promise<acp.PromptResponse> {
    let stopReason: acp.StopReason = "end_turn";
    try {
      for await (const output of this.#outputs(content)) {
        await this.#show(output);
        if (output.type === "run-event") stopReason = stopReasonAfter(output.event, stopReason);
      }
    } catch (error) {
      if (!(error instanceof SessionError && error.code === "ABORTED")) throw error;
      stopReason = "cancelled";
    }
    const { title, updatedAt } = infoOf(await this.chat.openTree.refresh());
    await this.#tell({ sessionUpdate: "session_info_update", title, updatedAt });
    return { stopReason };
  }

  /** The result of a prompt: of a command, or of a message, before which an open run is continued. */
  #outputs(content: Content): AsyncGenerator<ChatOutput> {
    const chat = this.chat;
    return chat.turns.stoppable(async function* () {
      if (typeof content === "string" && COMMANDS.includes(/^\/(\w+)(?=\s|$)/.exec(content)?.[1] ?? ""))
        return yield* chat.perform(content);
      if ((await chat.openTree.refresh()).openRuns.length > 0) yield* chat.recover(chat.openTree);
      yield* chat.say(content);
    });
  }

  async #show(output: ChatOutput): Promise<void> {
    // Editors join the chunks of a turn.
    if (output.type === "notice") return this.#tell(...spoken("agent_message_chunk", `${output.text}\n\n`));
    if (output.type === "question") return this.#ask(output.approval);
    if (output.type !== "run-event") return;
    const { event } = output;
    if (event.type === "run-failed" && event.error.code !== "ABORTED") throw event.error.cause;
    await this.#tell(...this.#updates.happened(event));
    // Other calls continue while the editor asks the user.
    if (event.type === "approval-required") void this.#ask(event.approval).catch(() => this.chat.interrupt());
    const { contextWindow: size } = this.chat.model;
    if (event.type === "usage" && size !== undefined)
      await this.#tell({ sessionUpdate: "usage_update", used: event.usage.totalTokens, size });
  }

  /** Asks the user to approve a call, and passes the answer to the chat. */
  async #ask(approval: Approval): Promise<void> {
    await this.#tell(this.#updates.call(approval, "pending"));
    const request: acp.RequestPermissionRequest = {
      sessionId: this.chat.openTree.id,
      toolCall: this.#updates.asked(approval),
      options: [
        { optionId: "yes", kind: "allow_once", name: "Allow" },
        { optionId: "no", kind: "reject_once", name: "Reject" },
      ],
    };
    const answer = await this.#editor.request("session/request_permission", request).catch(() => null);
    const chosen = answer?.outcome.outcome === "selected" ? answer.outcome.optionId : null;
    const word = chosen === "yes" ? "yes" : chosen !== null ? "no" : answer === null ? "nobody" : "stopped";
    await this.chat.decide(approval.question, word);
  }

  async #tell(...updates: readonly acp.SessionUpdate[]): Promise<void> {
    for (const update of updates) {
      await this.#editor.notify("session/update", { sessionId: this.chat.openTree.id, update });
    }
  }
}

function choice(id: string, name: string, currentValue: string, values: readonly string[]) {
  const options = values.map((value) => ({ value, name: value }));
  return { type: "select", id, category: id, name, currentValue, options } as const;
}
