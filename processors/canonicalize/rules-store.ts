import { stringSerde } from '../../schemas/codec.ts'
import type { Control } from '../../schemas/types.ts'
import type { KeyValueStore, StoreBuilder } from '../../topology/streams/types.ts'
import { isScopeRule, scopeHostPrefix, scopeKey } from './scope.ts'

/** A rule under its key in `controls`; under `hasRefused` true. */
export type StoredRule = Control | true

/** Set once the rules refused a link since `discovered-urls` was last read from its start. */
export const hasRefused = '~has-refused'

/** The store `rules`: few, small, read whole at `init`; hence JSON. */
export const rulesStore: StoreBuilder<string, StoredRule> = {
  name: 'rules',
  keySerde: stringSerde,
  valueSerde: {
    serialize: (rule) => Buffer.from(JSON.stringify(rule)),
    deserialize: (bytes) => JSON.parse(stringSerde.deserialize(bytes)) as StoredRule,
  },
}

export function* storedRules(
  store: Pick<KeyValueStore<string, StoredRule>, 'range'>,
): Generator<readonly [string, Control]> {
  for (const [key, rule] of store.range(scopeKey, afterRules)) {
    if (isScopeRule(key) && rule !== true) yield [key, rule]
  }
}

const afterRules = `${scopeHostPrefix.slice(0, -1)};`
