import { SessionError } from "../session/errors.ts";

const VARIABLES = { openai: "OPENAI_API_KEY", anthropic: "ANTHROPIC_API_KEY" } as const;

/**
 * The API key for a provider: the given one, else that of the environment.
 *
 * @throws {SessionError} `KEY_MISSING` if there is neither; a blank text counts as missing.
 */
export function apiKeyFor(provider: keyof typeof VARIABLES, given: string | undefined): string {
  const variable = VARIABLES[provider];
  const key = (given ?? process.env[variable] ?? "").trim();
  if (key !== "") return key;
  throw new SessionError(
    "KEY_MISSING",
    `There is no key for ${provider}: set the environment variable ${variable}, or give the option apiKey.`,
  );
}
