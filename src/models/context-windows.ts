import { checkArgument, isObject } from "../session/check-arguments.ts";
import { SessionError, show } from "../session/errors.ts";
import { isModelName, undatedName } from "../agent/model/undated-name.ts";

const windows = new Map<string, number>([...openaiWindows(), ...anthropicWindows()]);

/**
 * The maximum tokens of a request to a model; undefined if unknown. A dated id has the window of the undated one unless it was
 * registered itself.
 *
 * The table holds defaults for well-known models, without windows that providers enable only on request. Override them with
 * `registerContextWindows`, or with a model's option `contextWindow`.
 */
export function contextWindowOf(provider: string, model: string): number | undefined {
  const name = `${provider}/${model}`;
  return windows.get(name) ?? windows.get(undatedName(name));
}

/**
 * Adds or replaces context windows, by `provider/model`. Applies to models that are created afterwards.
 *
 * @throws {SessionError} `INVALID_OPTION` for a name without a provider, or a value that is not a whole number above 0;
 * nothing is registered then.
 */
export function registerContextWindows(added: Readonly<Record<string, number>>): void {
  checkArgument(isObject(added), added, "registerContextWindows", "an object of tokens by model");
  for (const [name, tokens] of Object.entries(added)) {
    if (!isModelName(name)) {
      throw new SessionError(
        "INVALID_OPTION",
        `Context window ${show(name)} names no model; write it as "provider/model".`,
      );
    }
    if (!Number.isSafeInteger(tokens) || tokens < 1) {
      throw new SessionError("INVALID_OPTION", `The context window of ${show(name)} must be a whole number above 0.`);
    }
  }
  for (const [name, tokens] of Object.entries(added)) windows.set(name, tokens);
}

function openaiWindows(): [name: string, tokens: number][] {
  const rows: [tokens: number, ids: readonly string[]][] = [
    // Of 400,000 tokens, 128,000 are reserved for the answer: the provider refuses a longer request.
    [272_000, ["gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5.1", "gpt-5.2", "gpt-5.4-mini", "gpt-5.4-nano"]],
    [272_000, ["gpt-5-codex", "gpt-5.1-codex", "gpt-5.2-codex", "gpt-5.3-codex"]],
    // Likewise of 1,050,000.
    [922_000, ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"]],
    [922_000, ["gpt-6-astra", "gpt-6-sol", "gpt-6-luna", "gpt-6.1-sol"]],
    [1_047_576, ["gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"]],
    [128_000, ["gpt-4o", "gpt-4o-mini", "gpt-4-turbo"]],
    [200_000, ["o4-mini", "o3", "o3-mini", "o1"]],
  ];
  return rows.flatMap(([tokens, ids]) => ids.map((id): [string, number] => [`openai/${id}`, tokens]));
}

function anthropicWindows(): [name: string, tokens: number][] {
  const rows: [tokens: number, ids: readonly string[]][] = [
    [1_000_000, ["claude-fable-5-1", "claude-mythos-5-1", "claude-fable-5", "claude-mythos-5", "claude-opus-5-5"]],
    [1_000_000, ["claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-4-6"]],
    [1_000_000, ["claude-sonnet-5-5", "claude-sonnet-5", "claude-haiku-5-5"]],
    [200_000, ["claude-opus-4-5", "claude-opus-4-1", "claude-opus-4", "claude-sonnet-4-5", "claude-sonnet-4"]],
    [200_000, ["claude-haiku-4-5", "claude-3-7-sonnet", "claude-3-5-sonnet", "claude-3-5-haiku"]],
    [200_000, ["claude-3-opus", "claude-3-haiku"]],
  ];
  return rows.flatMap(([tokens, ids]) => ids.map((id): [string, number] => [`anthropic/${id}`, tokens]));
}
