import { SessionError } from "../../session/errors.ts";
import type { ClientCall } from "../wire/wire-model.ts";

/** The members of a client of the `openai` package that are used here. Callers may pass their own client. */
export interface OpenAIClient {
  readonly baseURL?: string;
  readonly timeout?: number;
  readonly chat: { readonly completions: { create(body: object, call: ClientCall): PromiseLike<unknown> } };
  readonly responses: { create(body: object, call: ClientCall): PromiseLike<unknown> };
}

/** Options of `loadOpenAIClient`. */
export interface OpenAIClientOptions {
  readonly apiKey: string;
  readonly baseURL?: string;
  readonly organization?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Creates a client of the `openai` package.
 *
 * @throws {SessionError} `DRIVER_MISSING` if it is not installed, `DRIVER_VERSION` if it is too old.
 */
export async function loadOpenAIClient(options: OpenAIClientOptions): Promise<OpenAIClient> {
  const { default: OpenAI } = await loadOpenAI();
  const { apiKey, baseURL, organization, headers } = options;
  const client = new OpenAI({
    apiKey,
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(organization === undefined ? {} : { organization }),
    ...(headers === undefined ? {} : { defaultHeaders: { ...headers } }),
    maxRetries: 0,
    // Errors are thrown. Logs of the client could contain parts of conversations.
    logLevel: "off",
  });
  if (typeof client.responses?.create !== "function") {
    throw new SessionError(
      "DRIVER_VERSION",
      "The installed version of openai is too old for this model: install version 5 or later.",
    );
  }
  return client as OpenAIClient;
}

async function loadOpenAI(): Promise<typeof import("openai")> {
  try {
    return await import("openai");
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "Models of openai need its client: install the package openai, version 5 or later.",
      {
        cause,
      },
    );
  }
}
