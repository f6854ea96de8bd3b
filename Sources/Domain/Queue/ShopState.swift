/// The state of one barber at the moment of the estimate.
public struct BarberState: Sendable, Hashable {
    /// Whether the barber takes the next customer.
    public enum Duty: Sendable, Hashable {
        case working
        /// Finishes the current service, if any, and takes no customers until the break ends. Nil means that the
        /// estimate does not rely on the end of the break.
        case onBreak(endsInMinutes: Double?)
    }

    /// A service that has begun.
    public struct Service: Sendable, Hashable {
        public var elapsedMinutes: Double
        /// The planned duration of the booking, if any.
        public var plannedMinutes: Double?

        public init(elapsedMinutes: Double, plannedMinutes: Double? = nil) {
            self.elapsedMinutes = elapsedMinutes
            self.plannedMinutes = plannedMinutes
        }
    }

    public var id: String
    public var duty: Duty
    /// The current service; nil when idle.
    public var service: Service?

    public init(id: String, duty: Duty = .working, service: Service? = nil) {
        self.id = id
        self.duty = duty
        self.service = service
    }

    /// Whether this barber would serve a new customer at once.
    var isFree: Bool { duty == .working && service == nil }

    /// Whether the barber will serve a waiting customer.
    var willServe: Bool {
        switch duty {
        case .working: true
        case .onBreak(let endsInMinutes): endsInMinutes != nil
        }
    }
}

/// A customer that has arrived or is due soon, and whose service has not begun.
public struct WaitingCustomer: Sendable, Hashable {
    public var id: String
    public var lane: QueueLane
    /// Minutes until the customer is there: negative since the arrival, positive until the start of a booking. The lane
    /// is sorted by it. Bookings due within ``WaitLimits/dueHorizonMinutes`` count, later ones do not.
    public var readyInMinutes: Double
    /// The requested barber; nil for the first free one.
    public var barberId: String?
    /// The planned duration of the booking, if any.
    public var plannedMinutes: Double?

    public init(
        id: String, lane: QueueLane, readyInMinutes: Double, barberId: String? = nil, plannedMinutes: Double? = nil
    ) {
        self.id = id
        self.lane = lane
        self.readyInMinutes = readyInMinutes
        self.barberId = barberId
        self.plannedMinutes = plannedMinutes
    }
}

/// The input of an estimate: the current state of the shop and its history.
public struct ShopState: Sendable, Hashable {
    /// The barbers on duty, including those on a break; barbers off duty are left out.
    public var barbers: [BarberState]
    public var waiting: [WaitingCustomer]
    /// The latest completed services. The estimator learns from them how long services take and how much they vary.
    /// Services after the first ``WaitLimits/samplesMax`` are ignored.
    public var samples: [ServiceSample]
    public var arrivals: ArrivalHistory

    public init(
        barbers: [BarberState], waiting: [WaitingCustomer], samples: [ServiceSample] = [],
        arrivals: ArrivalHistory = ArrivalHistory()
    ) {
        self.barbers = barbers
        self.waiting = waiting
        self.samples = samples
        self.arrivals = arrivals
    }
}
