import type { ModelRequest } from "../../agent/model/model.ts";
import { SessionError, show } from "../../session/errors.ts";

const BUDGET_TOKENS_MIN = 1024;
const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 10_240,
  high: 20_480,
  xhigh: 32_768,
  max: 49_152,
};
const EFFORTS: Readonly<Record<string, string>> = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
};

/** The default limit of an answer's tokens, by the limit of the model. */
export function outputTokensOf(id: string): number {
  if (/^claude-3-(opus|sonnet|haiku)/.test(id)) return 4096;
  if (/^claude-3-5/.test(id)) return 8192;
  return /^claude-opus-4(-[01])?(-\d{8})?$/.test(id) ? 32_000 : 64_000;
}

/**
 * The body fields that ask for thinking; none if the request does not set a level, or if it forces a tool, which the provider
 * refuses together with thinking.
 *
 * @throws {SessionError} `INVALID_OPTION` for an unknown level.
 */
export function thinkingFields(
  id: string,
  request: ModelRequest,
  maxTokens: number,
  mode: "budget" | "adaptive" | undefined,
): Readonly<Record<string, unknown>> {
  const { thinkingLevel: level, toolChoice } = request;
  const adaptive = (mode ?? modeOf(id)) === "adaptive";
  if (level === undefined || level === "") return {};
  // These models think by default, and thinking can be disabled; other families refuse the field.
  if (level === "off") return adaptive && /(opus|sonnet|haiku)/.test(id) ? { thinking: { type: "disabled" } } : {};
  const budget = BUDGET_TOKENS[level];
  if (budget === undefined) {
    const known = ["off", ...Object.keys(BUDGET_TOKENS)].join(", ");
    throw new SessionError(
      "INVALID_OPTION",
      `There is no thinking level ${show(level)} of anthropic; known are ${known}.`,
    );
  }
  if (toolChoice === "required" || typeof toolChoice === "object") return {};
  if (adaptive)
    return { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: EFFORTS[level] } };
  // The budget counts against the limit of the answer, which needs tokens besides thinking.
  const tokens = Math.min(budget, Math.floor(maxTokens * 0.75));
  return tokens < BUDGET_TOKENS_MIN ? {} : { thinking: { type: "enabled", budget_tokens: tokens } };
}

/** How to ask for thinking: models up to 4.5 and other makers' models accept a budget, later ones refuse it. */
function modeOf(id: string): "budget" | "adaptive" {
  const old = /^claude-(3|instant|2)|^claude-(opus|sonnet|haiku)-4(-[0-5])?([-@]\d{8}|-latest)?$/.test(id);
  return old || !id.startsWith("claude-") ? "budget" : "adaptive";
}
