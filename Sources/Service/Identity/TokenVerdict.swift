import Values

/// What an authenticator says of a token.
enum TokenVerdict: Sendable {
    case caller(Caller)
    case refused(Failure)
    /// The answer is not known yet (a signature is being verified, keys are being fetched): start what is missing, and
    /// call `resume` when asking again will get an answer.
    case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
}
