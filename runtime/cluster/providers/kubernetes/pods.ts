/** The fields of the API's objects that are read; each may be missing. */
export interface Pod {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: PodStatus;
}
export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly hostIP?: string;
  readonly podIP?: string;
  readonly conditions?: readonly {
    readonly type?: string;
    readonly status?: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
  readonly containerStatuses?: readonly {
    readonly name?: string;
    readonly ready?: boolean;
    readonly state?: {
      readonly waiting?: { readonly reason?: string; readonly message?: string };
      readonly running?: object;
      readonly terminated?: {
        readonly reason?: string;
        readonly message?: string;
        readonly exitCode?: number;
      };
    };
  }[];
}
export interface PodList {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly items?: readonly Pod[];
}
