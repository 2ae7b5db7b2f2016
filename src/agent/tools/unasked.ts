import { SessionError, show } from "../../session/errors.ts";
import type { Tool } from "./tool.ts";
import type { ToolEffects } from "./tool-effects.ts";

/** Which calls run without a person's word: none, those that only read, those that write files too, or all. */
export type Unasked = "nothing" | "reads" | "writes" | "all";

/** Every word for what runs unasked, the strictest first. */
export const UNASKED: readonly Unasked[] = Object.freeze(["nothing", "reads", "writes", "all"]);

const NEEDED: Readonly<Record<ToolEffects, Unasked>> = { reads: "reads", writes: "writes", commands: "all" };

/** What a tool can do; one that does not say counts as one that runs commands. */
export function effectsOf({ effects }: Tool): ToolEffects {
  return effects === "reads" || effects === "writes" ? effects : "commands";
}

/**
 * Whether calls of a tool run without a question, as far as their arguments do not matter. Undefined is `all` for tools of
 * one's own; one that nobody vouched for needs the word itself.
 */
export function runsUnasked(tool: Tool, unasked: Unasked | undefined): boolean {
  if (tool.untrusted === true) return unasked === "all";
  return UNASKED.indexOf(NEEDED[effectsOf(tool)]) <= UNASKED.indexOf(unasked ?? "all");
}

/** Of two words the stricter one; where one side says nothing, the other's. */
export function stricterOf(one: Unasked | undefined, other: Unasked | undefined): Unasked | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return UNASKED.indexOf(one) <= UNASKED.indexOf(other) ? one : other;
}

/** @throws {SessionError} `INVALID_OPTION` for anything but one of the words, or nothing. */
export function checkUnasked(unasked: unknown): void {
  if (unasked === undefined || UNASKED.some((word) => word === unasked)) return;
  throw new SessionError(
    "INVALID_OPTION",
    `unasked is ${show(unasked)}; give "nothing", "reads", "writes" or "all", or leave it out.`,
  );
}
