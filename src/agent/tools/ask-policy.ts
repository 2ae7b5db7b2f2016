import { SessionError, show } from "../../session/errors.ts";
import type { Tool } from "./tool.ts";
import type { ToolEffects } from "./tool-effects.ts";

/**
 * Which calls need a person's approval: `always` all of them, `writes` those that write files or run commands, `commands`
 * only those that run commands, `never` none.
 */
export type AskPolicy = "always" | "writes" | "commands" | "never";

/** Every value of `ask`, the strictest first. */
export const ASK_POLICIES: readonly AskPolicy[] = Object.freeze(["always", "writes", "commands", "never"]);

/** The strictest policy under which a tool with these effects runs without approval. */
const RUNS_UNDER: Readonly<Record<ToolEffects, AskPolicy>> = { reads: "writes", writes: "commands", commands: "never" };

/** Requests on record may hold the option under its former name, with the values that named what ran without approval. */
const FORMER_VALUES: Readonly<Record<string, AskPolicy>> = {
  nothing: "always",
  reads: "writes",
  writes: "commands",
  all: "never",
};

/** The effects of a tool; a tool that declares none counts as `commands`. */
export function effectsOf({ effects }: Tool): ToolEffects {
  return effects === "reads" || effects === "writes" ? effects : "commands";
}

/**
 * True if calls of a tool run without approval, as far as their arguments do not matter. Undefined means `never` for the
 * program's own tools; an untrusted tool needs an explicit `never`.
 */
export function runsWithoutQuestion(tool: Tool, ask: AskPolicy | undefined): boolean {
  if (tool.untrusted === true) return ask === "never";
  return ASK_POLICIES.indexOf(RUNS_UNDER[effectsOf(tool)]) <= ASK_POLICIES.indexOf(ask ?? "never");
}

/** The stricter of two policies; if one is undefined, the other. */
export function stricterOf(one: AskPolicy | undefined, other: AskPolicy | undefined): AskPolicy | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return ASK_POLICIES.indexOf(one) <= ASK_POLICIES.indexOf(other) ? one : other;
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is a policy or undefined. */
export function checkAskPolicy(ask: unknown): void {
  if (ask === undefined || ASK_POLICIES.some((policy) => policy === ask)) return;
  throw new SessionError(
    "INVALID_OPTION",
    `ask is ${show(ask)}; give "always", "writes", "commands" or "never", or leave it out.`,
  );
}

/** Options of a stored request with `ask` in place of the option's former name. */
export function withCurrentAsk<Options extends object>(options: Options): Options {
  const { unasked, ...rest } = options as { readonly unasked?: string };
  if (unasked === undefined) return options;
  return { ...rest, ask: FORMER_VALUES[unasked] ?? "always" } as unknown as Options;
}
