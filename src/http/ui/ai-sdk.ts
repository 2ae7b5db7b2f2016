/* All that Skein knows of the AI SDK, which is types only: a front end brings the package itself. */
export type { ChatTransport, JSONValue, UIMessage, UIMessageChunk } from "ai";
