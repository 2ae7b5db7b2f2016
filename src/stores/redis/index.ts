export type { IoRedisClient, OfficialRedisClient, OfficialRedisCluster, RedisClient } from "./redis-client.ts";
export { openRedisStore, type RedisStoreOptions } from "./redis-store.ts";
