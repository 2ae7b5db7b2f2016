import { SessionError } from "../../session/errors.ts";
import type { ClientCall } from "../wire/wire-model.ts";

/** The members of a client of the `@anthropic-ai/sdk` package that are used here. Callers may pass their own client. */
export interface AnthropicClient {
  readonly timeout?: number;
  readonly messages: { create(body: object, call: ClientCall): PromiseLike<unknown> };
}

/** Options of `loadAnthropicClient`. */
export interface AnthropicClientOptions {
  readonly apiKey: string;
  readonly baseURL?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Creates a client of the `@anthropic-ai/sdk` package. @throws {SessionError} `DRIVER_MISSING` if it is not installed. */
export async function loadAnthropicClient(options: AnthropicClientOptions): Promise<AnthropicClient> {
  const { default: Anthropic } = await loadAnthropic();
  const { apiKey, baseURL, headers } = options;
  const client = new Anthropic({
    apiKey,
    // Otherwise the client would also send a token from the environment.
    authToken: null,
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(headers === undefined ? {} : { defaultHeaders: { ...headers } }),
    maxRetries: 0,
    // Errors are thrown. Logs of the client could contain parts of conversations.
    logLevel: "off",
  });
  return client as AnthropicClient;
}

async function loadAnthropic(): Promise<typeof import("@anthropic-ai/sdk")> {
  try {
    return await import("@anthropic-ai/sdk");
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "Models of anthropic need its client: install the package @anthropic-ai/sdk, version 0.135 or later.",
      { cause },
    );
  }
}
