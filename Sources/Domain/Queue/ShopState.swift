/// One barber at the moment of the estimate.
public struct BarberState: Sendable, Hashable {
    /// Whether the barber takes the next customer.
    public enum Duty: Sendable, Hashable {
        case working
        /// Finishes the service at hand, if any, and takes no customer until the break is over; nil: the estimate does not
        /// count on its end.
        case onBreak(endsInMinutes: Double?)
    }

    /// A service that has begun.
    public struct Service: Sendable, Hashable {
        public var elapsedMinutes: Double
        /// The booking's planned duration, nil for one that has none.
        public var plannedMinutes: Double?

        public init(elapsedMinutes: Double, plannedMinutes: Double? = nil) {
            self.elapsedMinutes = elapsedMinutes
            self.plannedMinutes = plannedMinutes
        }
    }

    public var id: String
    public var duty: Duty
    /// The service at hand, nil when idle.
    public var service: Service?

    public init(id: String, duty: Duty = .working, service: Service? = nil) {
        self.id = id
        self.duty = duty
        self.service = service
    }

    /// Whether somebody who comes in now is served by this barber at once.
    var isFree: Bool { duty == .working && service == nil }

    /// Whether the barber can be counted on for a waiting customer.
    var willServe: Bool {
        switch duty {
        case .working: true
        case .onBreak(let endsInMinutes): endsInMinutes != nil
        }
    }
}

/// One customer who has arrived, or is due soon, and whose service has not begun.
public struct WaitingCustomer: Sendable, Hashable {
    public var id: String
    public var lane: QueueLane
    /// Minutes until the customer is there: negative since the arrival, positive until a booking's start. Orders the
    /// lane. Decision 5: those due within ``WaitLimits/dueHorizonMinutes`` count, later ones do not.
    public var readyInMinutes: Double
    /// The requested barber; nil for the first who is free.
    public var barberId: String?
    /// The booking's planned duration, nil for one that has none.
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

/// The input of an estimate: the present state of the shop and its history.
public struct ShopState: Sendable, Hashable {
    /// Barbers on duty, those on a break too; those off duty are left out.
    public var barbers: [BarberState]
    public var waiting: [WaitingCustomer]
    /// The latest completed services, from which the estimator learns how long services take and how much they vary;
    /// those after the first ``WaitLimits/samplesMax`` are ignored.
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
