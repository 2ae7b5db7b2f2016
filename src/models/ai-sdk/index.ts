export { type AiSdkModel, type AiSdkOptions, aiSdk } from "./ai-sdk.ts";
