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

/** The most tokens that an answer may take where the request does not say, by what the model can give. */
export function outputTokensOf(id: string): number {
  if (/^claude-3-(opus|sonnet|haiku)/.test(id)) return 4096;
  if (/^claude-3-5/.test(id)) return 8192;
  return /^claude-opus-4(-[01])?(-\d{8})?$/.test(id) ? 32_000 : 64_000;
}

/**
 * The fields of a body that ask for thinking; none when the request leaves it to the model.
 *
 * A request that forces a tool is sent without: the provider refuses both together.
 *
 * @throws {SessionError} `INVALID_OPTION` for a level that has no meaning here.
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
  // Some models think unless they are told not to, and the families beside these refuse to be told.
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
  // The budget is a part of the whole, and an answer needs room beside it.
  const tokens = Math.min(budget, Math.floor(maxTokens * 0.75));
  return tokens < BUDGET_TOKENS_MIN ? {} : { thinking: { type: "enabled", budget_tokens: tokens } };
}

/** Models up to 4.5 take a budget and later ones refuse it; endpoints with other models know the older way. */
function modeOf(id: string): "budget" | "adaptive" {
  const old = /^claude-(3|instant|2)|^claude-(opus|sonnet|haiku)-4(-[0-5])?([-@]\d{8}|-latest)?$/.test(id);
  return old || !id.startsWith("claude-") ? "budget" : "adaptive";
}
