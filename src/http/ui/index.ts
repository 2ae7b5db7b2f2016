export { chatHandler } from "./chat-handler.ts";
export { type ChatTransportInit, createChatTransport, type SkeinChatTransport } from "./chat-transport.ts";
export { toUIMessages, type UIMessageMetadata, type UIMessagesOptions } from "./to-ui-messages.ts";
export { toUIMessageStream, type UIMessageStreamOptions } from "./to-ui-message-stream.ts";
