export { SkeinSaver } from "./skein-saver.ts";
