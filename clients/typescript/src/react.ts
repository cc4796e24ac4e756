import { createContext, createElement, useContext, useEffect, useMemo, useState, useSyncExternalStore, type ReactElement, type ReactNode } from "react";

import type { Client } from "./client.js";
import { Store, type Entry } from "./store.js";
import type { TrackOptions, TrackState } from "./track.js";

const context = createContext<Store | undefined>(undefined);

/** Gives a store to everything below it. */
export function FoldhostProvider(props: { store: Store; children?: ReactNode }): ReactElement {
  return createElement(context.Provider, { value: props.store }, props.children);
}

/** The store of the nearest FoldhostProvider. */
export function useStore(): Store {
  const store = useContext(context);
  if (store === undefined) throw new Error("there is no FoldhostProvider above this component: put one there, or give the hook a store");
  return store;
}

/**
 * The latest value of a key, undefined while there is none: of a store, or of that of the nearest FoldhostProvider. The component is drawn again when the value changes, and not when an equal one comes.
 */
export function useProjection<T = unknown>(key: string, store?: Store): T | undefined {
  const face = useGiven(store).face<T>(key);
  return useSyncExternalStore(face.subscribe, face.value, face.value);
}

/** As useProjection, with whether the value is stale, and why. */
export function useEntry<T = unknown>(key: string, store?: Store): Entry<T> | undefined {
  const face = useGiven(store).face<T>(key);
  return useSyncExternalStore(face.subscribe, face.entry, face.entry);
}

/**
 * Keeps a store of a session for as long as the component is there. It gives another one for another client, id or set of keys; what else the options say counts when it begins.
 */
export function useSession(client: Client, id: string, options: Omit<TrackOptions, "store" | "signal"> = {}): { store: Store; state: TrackState; error: unknown } {
  const keys = options.keys?.join(",");
  const store = useMemo(() => new Store(), [client, id, keys]);
  const [now, setNow] = useState<{ store: Store; state: TrackState; error: unknown }>({ store, state: "connecting", error: undefined });
  useEffect(() => {
    const tracked = client.track(id, { ...options, store });
    const tell = (): void => setNow({ store, state: tracked.state, error: tracked.error });
    tell();
    const stop = tracked.onState(tell);
    return () => {
      stop();
      tracked.close();
    };
  }, [client, id, store]);
  return now.store === store ? now : { store, state: "connecting", error: undefined };
}

function useGiven(store: Store | undefined): Store {
  const above = useContext(context);
  const given = store ?? above;
  if (given === undefined) throw new Error("there is no FoldhostProvider above this component: put one there, or give the hook a store");
  return given;
}
